"""The search engine: exact whatever the blocks, products' errors, threads, dtype or device; bounded."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from st_xling.mining import find_neighbors, mine, score_pairs, xsim
from st_xling.mining.search import corpus_matrix, exact
from st_xling.mining.search.corpus_matrix import CorpusMatrix, product_error
from st_xling.mining.search.exact import block_sizes
from st_xling.utils.cosines import rounded_cosines, unit_vectors

pytestmark = pytest.mark.usefixtures("each_precision")


def embeddings(rows, seed, dim=7):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


def small_integers(max_rows=9):
    """Few distinct directions, so that duplicates and tied cosines abound."""
    shapes = st.tuples(st.integers(4, max_rows), st.just(3))
    return arrays(np.int8, shapes, elements=st.integers(-1, 1)).map(lambda a: np.where(a.any(1)[:, None], a, 1.0))


KINDS = ("random", "equal", "clusters", "few", "tiny", "huge", "mixed", "opposite")


def all_cosines(source, target):
    return rounded_cosines(unit_vectors(source) @ unit_vectors(target).T)


def by_definition(source, target, k):
    """All cosines, sorted by (highest cosine, lowest index)."""
    cosines = all_cosines(source, target)
    results = []
    for matrix in (cosines, cosines.T):
        order = np.lexsort((np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape), -matrix), axis=1)[:, :k]
        results.append((np.take_along_axis(matrix, order, axis=1), order))
    return results


def find_by(block_rows, block_columns, source, target, **options):
    """Neighbors by blocks of this size."""

    def blocks(sources, targets, *_, **__):
        return min(block_rows, sources), min(block_columns, targets)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "block_sizes", blocks)
        return find_neighbors(source, target, **options)


def assert_exact(neighbors, expected):
    for side, (similarities, indices) in zip(neighbors, expected):
        assert np.array_equal(side.indices, indices)
        np.testing.assert_allclose(side.similarities, similarities, rtol=0, atol=1e-6)


def draw(kind, rows, dim, random):
    """Adversarial rows: nothing to choose between but the index, or no more than the last bits."""
    values = random.standard_normal((rows, dim))
    if kind == "equal":
        values[:] = values[0]
    if kind == "clusters":
        values = values[:2][random.integers(0, 2, rows) if rows > 1 else [0]] * (1 + 1e-8 * values)
    if kind == "few":
        values = np.where(random.random((rows, dim)) < 0.5, -0.0, np.sign(values))
        values[:, 0] = 1.0
    if kind == "tiny":
        values *= 1e-30
    if kind == "huge":
        values *= 1e30
    if kind == "mixed":
        values *= 10.0 ** random.integers(-100, 100, (rows, 1))
    if kind == "opposite":
        values = np.where(random.random((rows, 1)) < 0.5, values[:1], -values[:1])
    return values


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 20),
    st.integers(1, 41),
    st.integers(1, 41),
    st.data(),
)
def test_exact_for_any_blocks(source_kind, target_kind, sources, targets, dim, block_rows, block_columns, data):
    random = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    source = draw(source_kind, sources, dim, random)
    target = draw(target_kind, targets, dim, random)
    if data.draw(st.booleans()):
        target = np.vstack([source, target])[random.permutation(sources + targets)][:targets]
    k = data.draw(st.integers(1, min(sources, targets)))
    if "mixed" not in (source_kind, target_kind) and data.draw(st.booleans()):
        source = source.astype(np.float32)
        target = target.astype(np.float32)
    neighbors = find_by(block_rows, block_columns, source, target, k=k)
    assert_exact(neighbors, by_definition(source, target, k))


def crowded(random, rows, dim=24):
    """Half of the rows are one sentence, encoded twice with other last bits; the others are sentences of their own."""
    values = random.standard_normal((rows, dim)).astype(np.float32)
    same = random.random(rows) < 0.5
    values[same] = values[0] * (1 + 1e-7 * random.standard_normal((same.sum(), 1))).astype(np.float32)
    values[same, :3] += 1e-8
    return values


@pytest.mark.parametrize("blocks", [(700, 900), (128, 300)])
def test_near_ties_by_the_thousand(blocks, monkeypatch):
    """Blocks where no product tells hundreds of thousands of pairs apart."""
    random = np.random.default_rng(0)
    source = crowded(random, 700)
    target = crowded(random, 900)
    target[::2] = source[0]
    crowds = []
    compare_all = exact._Products._compare_all

    def counted(self, *arguments):
        crowds.append(arguments)
        compare_all(self, *arguments)

    monkeypatch.setattr(exact._Products, "_compare_all", counted)
    neighbors = find_by(*blocks, source, target)
    assert crowds
    assert_exact(neighbors, by_definition(source, target, 4))


@pytest.mark.parametrize("size", [0.4, 1.0])
def test_products_may_be_off_by_their_bound(size, monkeypatch):
    """Other machines round otherwise: noise as large as the bound allows changes no answer."""
    random = np.random.default_rng(1)
    noise = torch.Generator().manual_seed(0)
    source, target = random.standard_normal((2, 300, 64)).astype(np.float32)
    target[:150] = source[:150] + 1e-4 * target[:150]
    target[150:200] = source[:50]
    expected = by_definition(source, target, 3)
    product = torch.mm
    slack = size * (product_error(64) - 64 * 2.0**-24 * 0.25)  # what float32 itself may be off by is within the rest

    def noisy(one, other, *, out):
        product(one, other, out=out)
        out += slack * (2 * torch.rand(out.shape, generator=noise) - 1)

    monkeypatch.setattr(torch, "mm", noisy)
    assert_exact(find_by(128, 100, source, target, k=3), expected)


@pytest.mark.parametrize("dim", [1, 768, 4096])
@pytest.mark.parametrize(("dtype", "exponent"), [(torch.float32, -10), (torch.bfloat16, 0), (torch.bfloat16, -8)])
def test_bound_holds_and_is_near(dim, dtype, exponent):
    """Random rows; rows of one sign and size, whose products all add up; near-copies, which rounding moves alike."""
    random = np.random.default_rng(dim)
    near = 1 + 2.0**exponent * random.random((20, dim))
    rows = np.vstack([random.standard_normal((40, dim)), np.ones((1, dim)), near]).astype(np.float32)
    side = CorpusMatrix(rows, "rows", torch.device("cpu"))
    unit = torch.empty(len(rows), dim, dtype=dtype)
    side.unit(0, len(rows), unit)
    exact = all_cosines(rows, rows)
    errors = np.abs((unit @ unit.T).double().numpy() - exact)
    error = product_error(dim)
    rounding = 0.0
    if dtype == torch.bfloat16:
        error = corpus_matrix.bfloat16_error(side, side)
        rounding = corpus_matrix.output_rounding(torch.from_numpy(exact).double(), dtype).numpy()
        assert dim == 1 or errors.max() > (error + rounding.max()) / 50
    assert (errors <= error + rounding).all()
    assert error < (2.0**-6 if dtype == torch.bfloat16 else 1.2 * (dim + 16) * 2.0**-24 + 1e-6)


def test_crowded_bfloat16_blocks_are_multiplied_again(monkeypatch):
    """Cosines so alike that bfloat16 tells none apart, and float32 tells all."""
    random = np.random.default_rng(8)
    source, target = 1 + 0.02 * random.standard_normal((2, 900, 64)).astype(np.float32)
    multiplied = []
    mm = torch.mm

    def counted(one, other, **options):
        multiplied.append(one.dtype)
        return mm(one, other, **options)

    monkeypatch.setattr(torch, "mm", counted)
    monkeypatch.setattr(corpus_matrix, "_LEAST_ROWS", 0)
    monkeypatch.setattr(corpus_matrix, "prefers_bfloat16", lambda: True)
    neighbors = find_by(900, 450, source, target, k=1)
    assert multiplied == [torch.bfloat16, torch.float32, torch.float32]
    assert_exact(neighbors, by_definition(source, target, 1))


def test_rows_that_all_others_point_away_from():
    """Products of bfloat16 are compared by their bits, which have the order of numbers only if they are positive."""
    random = np.random.default_rng(10)
    source, target = random.standard_normal((2, 600, 16)) + 1
    source[:20] -= 4
    expected = by_definition(source, target, 2)
    assert (expected[0][0][:20] < 0).all()
    assert_exact(find_neighbors(source, target, k=2), expected)


def test_threads_and_low_precision_products_change_nothing():
    source, target = np.random.default_rng(2).standard_normal((2, 500, 96)).astype(np.float32)
    target[::3] = source[::3]
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        torch.set_num_threads(3)
        torch.set_float32_matmul_precision("medium")
        assert_exact(find_neighbors(source, target), by_definition(source, target, 4))
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "longdouble", ">f4"])
def test_memory_maps_and_dtypes(dtype, tmp_path):
    values = (8 * np.random.default_rng(3).standard_normal((2, 90, 20))).astype(dtype)
    sides = []
    for number, side in enumerate(values):
        np.save(tmp_path / f"{number}.npy", side)
        sides.append(np.load(tmp_path / f"{number}.npy", mmap_mode="r"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        neighbors = find_by(32, 17, *sides, k=5)
    assert_exact(neighbors, by_definition(*values.astype(np.float64), 5))


class Rows:
    """Rows that are read a piece at a time, and say how many."""

    ndim = 2

    def __init__(self, values):
        self._values = values
        self.shape = values.shape
        self.most = 0

    def __getitem__(self, rows):
        piece = self._values[rows]
        self.most = max(self.most, len(piece))
        return piece


def test_rows_elsewhere_are_never_read_whole(monkeypatch):
    monkeypatch.setattr("st_xling.mining.search.corpus_matrix._ROWS_AT_ONCE", 16)
    values = np.random.default_rng(4).standard_normal((2, 1500, 12)).astype(np.float32)
    sides = [Rows(side) for side in values]
    assert_exact(find_neighbors(*sides, k=3), by_definition(*values, 3))
    assert max(side.most for side in sides) <= 32 * 16


def test_budget_bounds_the_blocks():
    for memory_mib in (4, 64, 256, 1024):
        rows, columns = block_sizes(10**6, 10**6, 768, memory_mib=memory_mib, device="cpu")
        assert 8 * rows * columns + 14 * 768 * (rows + columns) <= memory_mib * 2**20
    assert block_sizes(30, 20, 768, memory_mib=256, device="cpu") == (30, 20)
    with pytest.raises(ValueError, match=r"64 by 64 sentences of dim 7680: got 1; allow 14 or more"):
        find_neighbors(np.ones((100, 7680)), np.ones((100, 7680)), memory_mib=1)


def test_a_flipped_bit_in_a_saved_search_is_noticed(tmp_path):
    """18 of 30 gave other neighbors without a word, and 11 a traceback."""
    source, target = np.random.default_rng(8).standard_normal((2, 60, 8))
    expected = find_neighbors(source, target, k=2, state_folder=tmp_path)
    state = tmp_path / "search.safetensors"
    whole = state.read_bytes()
    for place in range(0, 8 * len(whole), 101):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        state.write_bytes(damaged)
        with pytest.raises(ValueError, match="search.safetensors is damaged: .*; delete it, and the search starts"):
            find_neighbors(source, target, k=2, state_folder=tmp_path)
    state.unlink()
    again = find_neighbors(source, target, k=2, state_folder=tmp_path)
    assert all(np.array_equal(one.indices, other.indices) for one, other in zip(expected, again))
    assert state.read_bytes() == whole


def test_state_of_another_search_is_refused(tmp_path):
    source, target = np.random.default_rng(8).standard_normal((2, 60, 8))
    find_neighbors(source, target, k=2, state_folder=tmp_path)
    state = tmp_path / "search.safetensors"
    whole = state.read_bytes()
    state.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="search.safetensors is damaged: .*; delete it"):
        find_neighbors(source, target, k=2, state_folder=tmp_path)
    state.write_bytes(whole)
    changed = target.copy()
    changed[7, 3] += 1e-6
    others = {"k": {"k": 3}, "target": {"target_embeddings": changed}, "search": {"target_embeddings": target[:50]}}
    for name, other in others.items():
        embeddings = {"source_embeddings": source, "target_embeddings": target}
        with pytest.raises(ValueError, match=rf"begun for another task: .*{name} was .*name another folder"):
            find_neighbors(**{"k": 2, "state_folder": tmp_path, **embeddings, **other})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_gpu_finds_the_same(dtype):
    source, target = torch.from_numpy(np.random.default_rng(9).standard_normal((2, 3000, 128))).to(dtype)
    target[::3] = source[::3]
    expected = by_definition(source, target, 4)
    assert_exact(find_neighbors(source, target, device="cuda"), expected)
    assert_exact(find_by(700, 900, source.cuda(), target.cuda(), device="cuda"), expected)


@pytest.mark.parametrize(
    "source, target, k, message",
    [
        (np.eye(3), np.eye(3), 4, r"k must be smaller than the corpus.*k=4 for 3 source and 3 target.*lower k or mine"),
        (np.eye(3), np.eye(3), 0, "k must be at least 1: got k=0"),
        (np.eye(3), np.eye(4), 1, "same dim: got 3 and 4"),
        (np.ones(3), np.eye(3), 1, r"source_embeddings must have 2 dimensions.*\(3,\)"),
        (np.eye(3), np.empty((0, 3)), 1, r"target_embeddings must hold at least one vector.*\(0, 3\)"),
        (np.eye(2), np.array([[1, np.nan], [0, np.inf]]), 1, "target_embeddings.*NaN or infinity in rows 0, 1;"),
        (np.eye(2), np.zeros((9, 2)), 1, "only zeros in rows 0, 1, 2, 3, 4 and 4 more"),
    ],
)
def test_errors(source, target, k, message):
    with pytest.raises(ValueError, match=message):
        find_neighbors(source, target, k=k)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((3, 2), dtype=np.complex64), "real numbers: got complex64"),
        (torch.ones(3, 2, dtype=torch.complex64), "real numbers: got torch.complex64"),
        (torch.ones(3, 2).to_sparse(), "dense: got torch.sparse_coo"),
        (np.array([["Ja.", "Nein."]] * 3), "real numbers: got <U5"),
        ([[1.0, 2.0], [1.0], [3.0, 4.0]], "one length: got "),
        ({"a": 1}, "an array of numbers: got dict"),
        (np.float32(3), "source_embeddings"),
    ],
)
def test_what_is_no_matrix_of_numbers(bad: object, message: str) -> None:
    """Sentences as an array, or sparse vectors, ended in errors of torch that name neither argument nor remedy."""
    for search in (find_neighbors, mine, score_pairs, xsim):
        with pytest.raises(ValueError, match=message):
            search(bad, np.ones((3, 2)), k=1)


def test_any_form_of_vectors() -> None:
    rows = np.random.default_rng(3).integers(1, 9, (9, 4)).astype(np.float32)
    tensor = torch.from_numpy(rows)
    for form in (tensor.bfloat16(), tensor.double().requires_grad_(), rows[::-1].copy()[::-1], rows.tolist()):
        np.testing.assert_array_equal(mine(form, form, k=3).scores, mine(rows, rows, k=3).scores)
        np.testing.assert_array_equal(score_pairs(form, form, k=3), score_pairs(rows, rows, k=3))
        assert xsim(form, form, k=3) == xsim(rows, rows, k=3)
