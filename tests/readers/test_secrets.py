"""What gives access to something is not kept; what only sounds like it is."""

from __future__ import annotations

import pytest

from tracker.readers.secrets import HIDDEN, is_secret, masked, masked_text


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apikey", "API-KEY", "OPENAI_API_KEY", "openaiApiKey", "model.api_key", "env/api_key", "token", "hf_token", "auth.token",
        "password", "db-password", "passwd", "secret", "client_secret", "aws_secret_access_key", "aws_access_key_id", "Authorization", "credentials",
        "private_key",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    assert masked({name: "hunter2"}) == {name: HIDDEN}
    assert masked({"outer": [{name: "hunter2"}]}) == {"outer": [{name: HIDDEN}]}


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "keys",
        "question_key",
        "max_tokens",
        "tokens",
        "eos_token",
        "pad_token",
        "image_token",
        "tokenizer",
        "monkey",
        "keyboard",
        "author",
        "token_count",
    ],
)
def test_names_that_only_sound_like_it(name: str) -> None:
    assert not is_secret(name)
    assert masked({name: "hunter2"}) == {name: "hunter2"}
    assert masked_text(f"a=1,{name}=hunter2") == f"a=1,{name}=hunter2"


def test_lists_under_a_secret_name_and_values_that_are_no_text() -> None:
    told = {"api_key": ["a", "b"], "token": True, "password": None, "secret": "", "credentials": {"user": "u", "password": "p"}}
    assert masked(told) == {
        "api_key": HIDDEN,
        "token": True,
        "password": None,
        "secret": "",
        "credentials": {"user": "u", "password": HIDDEN},
    }


def test_a_format_may_have_further_names() -> None:
    told = {"path": "gpt-4", "key": "ENV", "nested": [{"key": ["k1"]}]}
    assert masked(told) == told
    assert masked(told, frozenset({"key"})) == {"path": "gpt-4", "key": HIDDEN, "nested": [{"key": HIDDEN}]}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("model=gpt-4,api_key=abc,temperature=0", "model=gpt-4,api_key=***,temperature=0"),
        ("pretrained=org/m,eos_token=</s>,token=abc", "pretrained=org/m,eos_token=</s>,token=***"),
        ("run.py --api-key abc --data MMStar", "run.py --api-key *** --data MMStar"),
        ("run.py --judge-key=abc --max-tokens 5", "run.py --judge-key=*** --max-tokens 5"),
        ("https://host/v1?token=abc&model=m", "https://host/v1?token=***&model=m"),
        ("postgresql://me:pw@host/db", "postgresql://***@host/db"),
        ("https://host/path?mail=me@example.org", "https://host/path?mail=me@example.org"),
        ("multi-token prediction, a token a time", "multi-token prediction, a token a time"),
        ("uses sk-abcdefghijklmnop1234 here", "uses *** here"),
        ("hf_ABCDEFGHIJKLMNOPQRSTUVWX", "***"),
        ("a key = value", "a key = value"),
    ],
)
def test_secrets_inside_texts(text: str, kept: str) -> None:
    assert masked_text(text) == kept
    assert masked([text]) == [kept]


def test_command_lines_as_lists() -> None:
    assert masked(["run.py", "--api-key", "abc", "--data", "MMStar", "--verbose"]) == [
        "run.py",
        "--api-key",
        HIDDEN,
        "--data",
        "MMStar",
        "--verbose",
    ]


def test_memory_addresses_of_functions_mean_nothing() -> None:
    assert masked({"f": "<function g at 0x7f31>", "text": "at 0x7f31"}) == {"f": "<function g>", "text": "at 0x7f31"}
