"""Image clusters and their resampling: cells and mean tokens as sums over clusters, so that a replicate is a product with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.answers import AskedQuestions
    from analyses.cells import CellStudy

Resampling = Literal["ordinary", "positive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Clusters of questions by their first question, and the strata that they are drawn within, both in natural order.

    A cluster is a connected component of image_key (within a benchmark) joined by pair_key (across releases in a suite); a question
    without image_key is a cluster of its own. A stratum is a benchmark, or benchmarks that share clusters.
    """

    of_question: npt.NDArray[np.int64]
    stratum: npt.NDArray[np.int64]
    """Stratum of each cluster."""

    def __len__(self) -> int:
        """Number of clusters."""
        return len(self.stratum)

    def sizes(self) -> npt.NDArray[np.int64]:
        """Clusters in each stratum."""
        return np.bincount(self.stratum)


def find_clusters(questions: AskedQuestions, used: npt.NDArray[np.bool_] | None = None) -> Clusters:
    """Clusters of the questions that are used (-1 for others)."""
    n = len(questions)
    used = np.ones(n, dtype=bool) if used is None else used
    image = _codes(questions, "benchmark", "image_key", used)
    pair = _codes(questions, "suite", "pair_key", used)
    links = [
        (np.arange(n)[codes >= 0], n + offset + codes[codes >= 0]) for codes, offset in ((image, 0), (pair, image.max(initial=-1) + 1))
    ]
    rows, columns = (np.concatenate(parts) for parts in zip(*links, strict=True))
    size = int(max(columns.max(initial=-1), n - 1)) + 1
    component = connected_components(sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(size, size)), directed=False)[1][:n]
    first: dict[int, int] = {}
    of_question = np.full(n, -1, dtype=np.int64)
    for question in np.flatnonzero(used).tolist():
        of_question[question] = first.setdefault(int(component[question]), len(first))
    benchmark = np.unique(questions.text["benchmark"].astype(str), return_inverse=True)[1]
    pairs = np.unique(np.stack([of_question[used], benchmark[used]]), axis=1)
    clusters = len(first)
    graph = sparse.coo_matrix(
        (np.ones(pairs.shape[1]), (pairs[0], clusters + pairs[1])), shape=(clusters + benchmark.max(initial=0) + 1,) * 2
    )
    joined = connected_components(graph, directed=False)[1][:clusters]
    order: dict[int, int] = {}
    stratum = np.array([order.setdefault(int(one), len(order)) for one in joined], dtype=np.int64)
    return Clusters(of_question=of_question, stratum=stratum)


def _codes(questions: AskedQuestions, scope: str, name: str, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Numbers of (scope, key), the benchmark in place of a scope that is not known; -1 where the key is not given."""
    numbers: dict[tuple[Any, ...], int] = {}
    columns = zip(*(questions.text[one].tolist() for one in (scope, "benchmark", name)), used.tolist(), strict=True)
    return np.array(
        [
            numbers.setdefault((where, benchmark if where is None else None, key), len(numbers)) if key is not None and use else -1
            for where, benchmark, key, use in columns
        ],
        dtype=np.int64,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """What each cluster adds to each cell: sparse matrices, cells x clusters."""

    clusters: Clusters
    records: sparse.csr_array
    errors: sparse.csr_array
    tokens: sparse.csr_array
    """R of the records: visual tokens, or effective pixels."""
    with_tokens: sparse.csr_array
    """Records that state R."""
    clusters_of_cell: npt.NDArray[np.int64]
    """Clusters of the benchmark of each cell: m of Eq. 15."""

    def rebuild(self, weights: npt.NDArray[np.float64]) -> Rebuilt:
        """Cells of each replicate; weights: replicates x clusters."""
        n, errors, tokens, stated = (np.asarray(part @ weights.T).T for part in (self.records, self.errors, self.tokens, self.with_tokens))
        with np.errstate(invalid="ignore", divide="ignore"):
            return Rebuilt(n=n, error=errors / n, tokens=tokens / stated)

    def variance(self, error: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Cluster variance of each cell's error (separable-law paper, Eq. 15); NaN where the benchmark has a single cluster."""
        error = error[:, None]
        n = np.asarray(self.records.sum(axis=1)).ravel()
        deviations = self.errors - self.records.multiply(error).tocsr()
        square = np.asarray(deviations.multiply(deviations).sum(axis=1)).ravel()
        total = np.asarray(deviations.sum(axis=1)).ravel()
        m = self.clusters_of_cell.astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(m / (m - 1) * (square - total**2 / m) / n**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Cells of replicates: arrays replicates x cells; NaN where a replicate left a cell without records."""

    n: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    tokens: npt.NDArray[np.float64]


def cluster_sums(study: CellStudy, resource: Literal["visual_tokens", "effective_pixels"] = "visual_tokens") -> ClusterSums:
    """Sums over the answers of each cell and cluster; `resource` is what R counts."""
    answers, inside = study.answers, study.cell_of >= 0
    used = np.zeros(len(answers.questions), dtype=bool)
    used[answers.question[inside]] = True
    clusters = find_clusters(answers.questions, used)
    cell, cluster = study.cell_of[inside], clusters.of_question[answers.question[inside]]
    shape = (len(study.cells), len(clusters))

    def summed(values: npt.NDArray[np.float64]) -> sparse.csr_array:
        key, position = np.unique(cell * shape[1] + cluster, return_inverse=True)
        return sparse.csr_array((np.bincount(position, weights=values), (key // shape[1], key % shape[1])), shape=shape)

    tokens = answers.numbers[resource][inside]
    stated = ~np.isnan(tokens)
    return ClusterSums(
        clusters=clusters,
        records=summed(np.ones(len(cell))),
        errors=summed(1.0 - answers.numbers["credit"][inside]),
        tokens=summed(np.where(stated, tokens, 0.0)),
        with_tokens=summed(stated.astype(float)),
        clusters_of_cell=_clusters_by_benchmark(study, clusters),
    )


def _clusters_by_benchmark(study: CellStudy, clusters: Clusters) -> npt.NDArray[np.int64]:
    benchmarks = study.answers.questions.text["benchmark"].tolist()
    members: dict[str, set[int]] = {}
    for benchmark, cluster in zip(benchmarks, clusters.of_question.tolist(), strict=True):
        if cluster >= 0:
            members.setdefault(benchmark, set()).add(cluster)
    return np.array([len(members.get(benchmark, ())) for benchmark in study.cells.text["benchmark"].tolist()], dtype=np.int64)


def precision_weights(variance: npt.NDArray[np.float64], keep: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.float64]:
    """Weights of cells in inverse proportion to the variance of their error, with a mean of one over the kept cells; 0 for others.

    Ours, where B.4 is silent: a variance of zero counts as the smallest positive one, a variance that cannot be estimated (a single
    cluster) as the largest; where none is positive all weights are one.
    """
    keep = np.ones(len(variance), dtype=bool) if keep is None else keep
    known = variance[keep & (variance > 0)]
    if not len(known):
        return keep.astype(float)
    usable = np.where(np.isnan(variance), known.max(), np.maximum(variance, known.min()))
    weights = np.where(keep, 1.0 / usable, 0.0)
    return np.asarray(weights / weights[keep].mean())


def draw(clusters: Clusters, seed: int, replicates: Sequence[int], kind: Resampling = "ordinary") -> npt.NDArray[np.float64]:
    """Weights of the clusters, replicates x clusters; replicate number and seed alone decide them.

    ordinary: each stratum's clusters drawn with replacement (whole numbers); positive: Dirichlet(1, ..., 1) times their number.
    """
    weights = np.empty((len(replicates), len(clusters)))
    members = [np.flatnonzero(clusters.stratum == stratum) for stratum in range(len(clusters.sizes()))]
    for row, replicate in enumerate(replicates):
        rng = np.random.default_rng([seed % 2**64, replicate])
        for some in members:
            m = len(some)
            drawn = np.bincount(rng.integers(0, m, m), minlength=m) if kind == "ordinary" else m * rng.dirichlet(np.ones(m))
            weights[row, some] = drawn
    return weights
