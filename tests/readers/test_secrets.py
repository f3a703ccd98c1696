"""What gives access to something is not kept; what only sounds like it is."""

from __future__ import annotations

import time

import pytest

from tracker.readers.secrets import HIDDEN, is_secret, masked, masked_text


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apikey", "API-KEY", "OPENAI_API_KEY", "openaiApiKey", "model.api_key", "env/api_key", "token", "hf_token", "auth.token",
        "password", "db-password", "passwd", "secret", "client_secret", "aws_secret_access_key", "aws_access_key_id", "Authorization", "credentials",
        "private_key", "pwd", "DB_PASS", "pass", "OPENAI_KEY", "azure-key", "auth", "basic_auth", "Cookie", "connection_string", "hf_tokens", "api_keys",
        "bearer", "sig", "secrets",
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
        "primary_key",
        "foreign_key",
        "score_key",
        "image_key",
        "pair_key",
        "targetKey",
        "max_token",
        "stop_tokens",
        "forward_pass",
        "pass@1",
        "signature",
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
        "credentials": HIDDEN,
    }


def test_numbers_are_secrets_unless_they_count_tokens() -> None:
    told = {"password": 12345, "pwd": 1.5, "token": 7, "pass": 0.5, "prompt_token": 9, "api_key": {"value": 1}, "token_list": [1]}
    hidden = {"password": HIDDEN, "pwd": HIDDEN, "api_key": HIDDEN}
    assert masked(told) == told | hidden
    assert masked({"hf_tokens": ["a", "b"], "token": [1, 2]}) == {"hf_tokens": HIDDEN, "token": [1, 2]}


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
        ("api_key: x, model: m", "api_key: ***, model: m"),
        ('{"api_key": "abcd", "n": 1}', '{"api_key": "***", "n": 1}'),
        ('{"a": "{\\"password\\": 12345}"}', '{"a": "{\\"password\\": \\"***\\"}"}'),
        ("{'api_key': 'ab\\'cd', 'n': 1}", "{'api_key': '***', 'n': 1}"),
        ("x {'credentials': {'key': 'abcd'}, 'n': 1}", "x {'credentials': ***, 'n': 1}"),
        ('args \\"token\\": \\"abcd\\", n', 'args \\"token\\": \\"***\\", n'),
        ('cut off {"api_key": "abc def', 'cut off {"api_key": "***"'),
        ("{password: 12345}", "{password: ***}"),
        ("Authorization: Bearer x", "Authorization: ***"),
        ('curl -H "Authorization: Bearer x" host', 'curl -H "Authorization: ***" host'),
        ("Cookie: a=b; c=d\nnext", "Cookie: ***\nnext"),
        ("sent Bearer abc.def", "sent Bearer ***"),
        ("https://host/b?sv=1&sig=a%2Fb&se=2", "https://host/b?sv=1&sig=***&se=2"),
        ("https://host/b?X-Amz-Signature=ab", "https://host/b?X-Amz-Signature=***"),
        ("url=https://host/b?token=abc", "url=https://host/b?token=***"),
        ("postgresql://u:p@ss@host/db", "postgresql://***@host/db"),
        ("run.py --verbose --key abc --n 5", "run.py --verbose --key *** --n 5"),
        ("run.py --use-auth-token --n 5", "run.py --use-auth-token --n 5"),
        ("OPENAI_KEY=abc DB_PASS='a b' run", "OPENAI_KEY=*** DB_PASS='***' run"),
        ("pass=1,max_token=5,question_key=id", "pass=1,max_token=5,question_key=id"),
    ],
)
def test_secrets_inside_texts(text: str, kept: str) -> None:
    assert masked_text(text) == kept
    assert masked([text]) == [kept]


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000 + "=b", "a-" * 100_000 + ":b", "key" * 70_000 + "=", "api_key='" * 20_000, "--key " * 30_000, "x://" * 50_000 + "@",
        "Bearer " * 30_000, "[" * 100_000 + "=", "token: {" * 20_000, "\\" * 100_000 + "=", "pwd=\\'" * 20_000, "a " * 100_000 + ":",
        "hf_token: {1} " * 20_000,
    ],
    ids=lambda text: text[:5],
)  # fmt: skip
def test_long_texts_take_no_longer_than_their_length(text: str) -> None:
    started = time.process_time()
    masked_text(text)
    assert time.process_time() - started < 2


def test_what_was_hidden_stays_as_it_is() -> None:
    told = {"a": "x=1 token=abc 'password': 'p'", "argv": ["--key", "k"], "credentials": {"a": 1}, "text": '{"pwd": 5}'}
    assert masked(masked(told)) == masked(told)
    assert "abc" not in str(masked(told))


def test_command_lines_as_lists() -> None:
    assert masked(["--key", "abc", "--use-token", "--data", 1, "--pwd", 12]) == [
        "--key",
        HIDDEN,
        "--use-token",
        "--data",
        1,
        "--pwd",
        HIDDEN,
    ]
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
