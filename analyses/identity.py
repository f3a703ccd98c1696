"""Order, hash and digest of questions and configurations by their natural keys, so that no database id decides a number."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.observations import Configurations, Questions


def places(needles: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Where each needle stands among distinct values; -1 where it does not."""
    if not len(values):
        return np.full(len(needles), -1, dtype=np.int64)
    order = np.argsort(values)
    found = np.minimum(np.searchsorted(values[order], needles), len(values) - 1)
    return np.where(values[order][found] == needles, order[found], -1).astype(np.int64)


def starts(*columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether a row differs from the row before it in any of the columns."""
    if not len(columns[0]):
        return np.zeros(0, dtype=bool)
    changes = [column[1:] != column[:-1] for column in columns]
    return np.asarray(np.r_[True, np.logical_or.reduce(changes)], dtype=np.bool_)


def pair_hash(
    seed: int, questions: Questions, configurations: Configurations, question: npt.NDArray[np.int64], configuration: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """A hash of seed, question and configuration by their natural keys.

    mix(q XOR c), where q and c are the first eight bytes, little-endian, of MD5(seed, benchmark, question key) and
    MD5(model, fingerprint), fields joined by 0x1F, and mix is the finaliser of SplitMix64.
    """
    q = np.array([_md5(seed, *names) for names in zip(questions.benchmark.tolist(), questions.key.tolist(), strict=True)], dtype=np.uint64)
    c = np.array(
        [_md5(*names) for names in zip(configurations.model.tolist(), configurations.fingerprint.tolist(), strict=True)], dtype=np.uint64
    )
    z = q[question] ^ c[configuration]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _md5(*fields: object) -> int:
    digest = hashlib.md5("\x1f".join(map(str, fields)).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


def digest_of(
    rows: dict[str, Any],
    question: npt.NDArray[np.int64],
    configuration: npt.NDArray[np.int64],
    questions: Questions,
    configurations: Configurations,
) -> str:
    """SHA-256 over the natural keys and the values of the cohort's rows, in natural order: equal data, equal digest."""
    digest = hashlib.sha256()
    for names in (questions.benchmark, questions.key, configurations.series, configurations.model, configurations.fingerprint):
        digest.update("\x1f".join(map(str, names.tolist())).encode() + b"\x1e")
    digest.update(configurations.parameters.astype("<f8").tobytes())
    for codes in (question, configuration):
        digest.update(codes.astype("<i8").tobytes())
    for name in ("credit", "p_gold", "visual_tokens"):
        digest.update(rows[name].astype("<f8").tobytes())
    return digest.hexdigest()
