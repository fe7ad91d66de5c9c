"""Decompositions, inverses and solutions of matrices."""

from functools import partial
from operator import mul

from assay import residuals
from assay.draw_distribution import anything
from assay.known_deviation import follows
from assay.reference import on_cpu, on_host, torch
from assay.registry import api, same
from assay.rules import Literal, constant, positive, positive_definite, symmetric
from assay.shorthand import LINALG, NO_BACKWARD, PUBLIC, UP_TO_SIGN, spread

# The largest numbers of elements that rules list one by one.
MANY = 1 << 20
SMALL = 1 << 12

SPECTRAL = {"spectral": True}


def invertible(this):
    """Square matrices with eigenvalues near 1; default values for others."""
    if this.ndim < 2 or this.shape[-1] != this.shape[-2] or this.size == 0:
        return None
    return positive_definite(-1 / this.shape[-1], 1 / this.shape[-1])


def _lopsided(this, spread):
    """Square non-symmetric matrices with eigenvalues near 1; large ones are symmetric."""
    usual = invertible(this)
    if usual is None or this.size > SMALL or this.dtype.startswith("complex"):
        return usual
    extent = this.shape[-1]
    return Literal(
        [
            1 + spread * (place % 5 / 8)
            if i == j
            else spread * ((i * 5 + j * 3 + place * 7) % 11 / 8 - 0.6) / extent
            for place in range(this.size // extent**2)
            for i in range(extent)
            for j in range(extent)
        ]
    )


def lopsided(this):
    return _lopsided(this, 1)


def turned(this):
    """The same, but every other matrix, including the first, has a negative determinant."""
    matrices = _lopsided(this, 1)
    if not isinstance(matrices, Literal):
        return matrices
    extent = this.shape[-1]
    return Literal(
        [
            -value if place % extent**2 < extent and place // extent**2 % 2 == 0 else value
            for place, value in enumerate(matrices.values)
        ]
    )


def nearly_singular(this, but=0):
    """The last row of each matrix is the first one, less 1/256 in one place, or 0 in each `but`-th matrix."""
    matrices = _lopsided(this, 1)
    if not isinstance(matrices, Literal) or this.shape[-1] < 2:
        return matrices
    extent, values = this.shape[-1], [round(value * 16) / 16 for value in matrices.values]
    for number, first in enumerate(range(0, this.size, extent**2)):
        values[first + extent * (extent - 1) : first + extent**2] = values[first : first + extent]
        values[first + extent**2 - 1] -= 0 if but and number % but == 0 else 1 / 256
    return Literal(values)


def singular(this):
    """Every other matrix, including the first, is singular."""
    return nearly_singular(this, 2)


def mirrored(this, hermitian=True):
    square = this.ndim > 1 and this.shape[-1] == this.shape[-2]
    return symmetric() if hermitian and square else None


# Elements that are 0 have the roundings of the others: a floor under wide values, too.
NEARLY = {"regimes": {"wide": {"x": nearly_singular}}, "traits": {"coordinates": lambda: 1.0}}
same(
    "x, name=None", *spread("inverse", *PUBLIC), "paddle.linalg.inv", to="torch.linalg.inv", x=lopsided,
    **NEARLY,
)  # fmt: skip


@api("paddle.linalg.det", x=turned, **NEARLY | {"regimes": {"wide": {"x": singular}}})
def det(x, name=None):
    """PyTorch's gradient at a singular matrix is 0. The derivative is the matrix of cofactors."""
    value = torch.linalg.det(x)
    if not x.requires_grad or (value != 0).all():
        return value
    with torch.no_grad():
        u, s, vh = torch.linalg.svd(x)
        others = s.unsqueeze(-2).expand_as(x).clone()
        others.diagonal(dim1=-2, dim2=-1).fill_(1)
        turns = torch.linalg.det(u) * torch.linalg.det(vh)
        cofactors = turns[..., None, None] * (u * others.prod(-1).unsqueeze(-2) @ vh).conj()
    return value.detach() + (cofactors * (x - x.detach())).sum((-2, -1))


@api(*spread("slogdet", *LINALG), x=turned, **NEARLY)
def slogdet(x, name=None):
    """Sign and logarithm, stacked."""
    return torch.stack([part.to(x.dtype) for part in torch.linalg.slogdet(x)])


@api(*spread("cholesky", *LINALG), x=invertible)
def cholesky(x, upper=False, name=None):
    return torch.linalg.cholesky(x, upper=upper)


def triangular(this, upper=False):
    """Well-conditioned triangular matrices."""
    if this.size > MANY or this.ndim < 2:
        return None
    rows, columns = this.shape[-2:]
    return Literal(
        [
            2 if i == j else (i * 5 + j * 3) % 7 / 8 - 0.4 if (i < j) == upper else 0
            for _ in range(this.size // max(rows * columns, 1))
            for i in range(rows)
            for j in range(columns)
        ]
    )


@api(*spread("cholesky_solve", *LINALG), y=triangular)
def cholesky_solve(x, y, upper=False, name=None):
    """PyTorch's gradient with respect to `y` also fills the unused half."""
    return torch.cholesky_solve(x, y.triu() if upper else y.tril(), upper)


same("x, upper=False, name=None", *spread("cholesky_inverse", *LINALG), x=triangular)


@api(*spread("solve", *LINALG), x=lopsided)
def solve(x, y, left=True, name=None, *, out=None):
    return torch.linalg.solve(x, y, left=left)


@api("paddle.linalg.triangular_solve", x=invertible)
def triangular_solve(x, y, upper=True, transpose=False, unitriangular=False, name=None):
    matrix = x.mT if transpose else x
    return torch.linalg.solve_triangular(matrix, y, upper=upper != transpose, unitriangular=unitriangular)


@api(*spread("pinv", *LINALG), x=invertible)
def pinv(x, rcond=1e-15, hermitian=False, name=None):
    """The gradient with respect to a Hermitian matrix is Hermitian."""
    square = x.shape[-1] == x.shape[-2]
    matrix = (x + x.mH) / 2 if hermitian and square else x
    return torch.linalg.pinv(matrix, rtol=rcond, hermitian=hermitian)


def moderate(this):
    """Closer to 1, so that high powers neither vanish nor overflow."""
    rule = _lopsided(this, 0.25)
    if isinstance(rule, Literal):
        return rule
    return rule and rule._replace(low=rule.low / 4, high=rule.high / 4)


_POWER = {"home": "torch.linalg", "x": moderate, "traits": {"chained": True}}
same("x, n, name=None", *spread("matrix_power", *LINALG), **_POWER)


@api(*spread("cond", *LINALG), x=lopsided, traits={"spectral": lambda p=None: p in (None, 2, -2, "nuc")})
def cond(x, p=None, name=None):
    """PyTorch's function is not differentiable for every p; it is used for empty matrices only."""
    if p not in (None, 2, -2) and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"p={p} is for square matrices")
    if x.numel() == 0:
        return torch.linalg.cond(x, p)
    if p in (None, 2, -2):
        values = torch.linalg.svdvals(x)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    norm = torch.linalg.matrix_norm
    return norm(x, p) * norm(torch.linalg.inv(x), p)


def half_empty(this):
    """Ones on the first half of the diagonal, else zeros, so that rounding does not change the rank."""
    if this.ndim < 2 or this.size > SMALL:
        return constant(0)
    rows, columns = this.shape[-2:]
    ones = {place * columns + place for place in range(min(rows, columns) // 2)}
    return Literal([1.0 if place % (rows * columns) in ones else 0.0 for place in range(this.size)])


@api(
    "paddle.linalg.matrix_rank",
    x=mirrored,
    regimes={"exact": {"x": half_empty}},
    tol=positive(0.05, 0.5),
    atol=positive(0.05, 0.5),
    rtol=positive(0.05, 0.5),
)
def matrix_rank(x, tol=None, hermitian=False, atol=None, rtol=None, name=None):
    """`tol` is absolute. PyTorch requires both limits as numbers or both as tensors."""
    limits = {"atol": atol if tol is None else tol, "rtol": rtol}
    if any(isinstance(limit, torch.Tensor) for limit in limits.values()):
        limits = {key: limit if limit is None else torch.as_tensor(limit) for key, limit in limits.items()}
    return torch.linalg.matrix_rank(x, **limits, hermitian=hermitian)


# Paddle documents no derivative for mode "r", and for "complete" only that of square matrices.
@api(*spread("qr", *LINALG), grad=lambda mode="reduced": mode == "reduced")
def qr(x, mode="reduced", name=None):
    """PyTorch has no gradient for mode "r"; R is that of the reduced factors."""
    if mode == "r":
        return torch.linalg.qr(x).R
    return tuple(torch.linalg.qr(x, mode))


def singular_parts(x, found):
    u, values, vh = found
    return {"values": values, "factors": on_host(residuals.of_svd(x, u, values, vh))}


@api(
    "paddle.linalg.svd",
    grad=UP_TO_SIGN,
    traits=SPECTRAL,
    shown=lambda found, given: singular_parts(given["x"], found),
)
def svd(x, full_matrices=False, name=None, *, out=None):
    return singular_parts(x, torch.linalg.svd(x, full_matrices=full_matrices))


same("x, name=None", "paddle.linalg.svdvals", home="torch.linalg", traits=SPECTRAL)


def parts_of(x, q):
    return min(6, *x.shape[-2:]) if q is None else q


def of_low_rank(this, q, shares):
    """Sums of outer products of halves, at most as many as the requested parts."""
    if this.size > MANY or this.ndim < 2:
        return None
    rows, columns = this.shape[-2:]
    shares = shares[: parts_of(this, q)]
    across = list(
        zip(
            *([(j * (5 + 2 * k) + k * k) % 11 - 4.5 for j in range(columns)] for k in range(len(shares))),
            strict=True,
        )
    )
    across = across or [()] * columns  # an empty sum
    rows_of: dict[tuple[float, ...], list[float]] = {}  # few rows differ, because positions count modulo 7
    values: list[float] = []
    for place in range(this.size // max(rows * columns, 1)):
        for i in range(rows):
            down = tuple(
                share * ((i * (3 + 2 * k) + 5 * k + place) % 7 - 3) for k, share in enumerate(shares)
            )
            if down not in rows_of:
                rows_of[down] = [sum(map(mul, down, parts)) for parts in across]
            values += rows_of[down]
    return Literal(values)


def low_rank(q=None, *, this):
    return of_low_rank(this, q, (1, 0.5, 2))


def of_the_same_rank(q=None, *, this):
    """The same columns and rows with other shares, so that the difference of both has low rank too."""
    return of_low_rank(this, q, (0.25, 1, 0.5))


def _low_rank(matrix, q, found, whole):
    """The residuals of a matrix's parts, and the values if the parts are the whole matrix."""
    few = min(matrix.shape[-2:])
    if q > few > 0:
        raise ValueError(f"q={q} is too large for matrices of {matrix.shape[-2]} x {matrix.shape[-1]}")
    whole = q >= few or (whole and matrix.size <= MANY)
    u, values, v = found
    known = whole or torch is None
    return {
        "values": values if known else anything(values.shape, values.dtype),
        "factors": on_host(residuals.of_low_rank(matrix, u, values, v, whole)),
    }


def best_parts(matrix, q):
    """The exact parts. Random samples find them if the matrix has no more."""
    u, values, vh = torch.linalg.svd(matrix, full_matrices=False)
    return u[..., :q], values[..., :q], vh.mH[..., :q]


def _svd_lowrank(given, found):
    x, less = given["x"], given.get("M")
    matrix = residuals.array_of(x) if less is None else residuals.array_of(x) - residuals.array_of(less)
    return _low_rank(matrix, parts_of(x, given.get("q")), found, less is None or less.shape == x.shape)


@api(
    *spread("svd_lowrank", *LINALG),
    grad=UP_TO_SIGN,
    x=low_rank,
    M=of_the_same_rank,
    traits=SPECTRAL,
    shown=lambda found, given: _svd_lowrank(given, found),
)
def svd_lowrank(x, q=None, niter=2, M=None, name=None):
    matrix = x if M is None else x - M
    return _svd_lowrank({"x": x, "q": q, "M": M}, best_parts(matrix, parts_of(x, q)))


def principal_parts(x, found, q=None, center=True, whole=True):
    """The residuals of the principal parts of a dense tensor; `whole` if its rank is known to be low."""
    matrix = residuals.array_of(x)
    if center and matrix.size:
        matrix = matrix - matrix.mean(-2, keepdims=True)
    return _low_rank(matrix, parts_of(x, q), found, whole)


@api(
    *spread("pca_lowrank", *LINALG),
    grad=UP_TO_SIGN,
    x=low_rank,
    traits=SPECTRAL,
    shown=lambda found, given: principal_parts(given["x"], found, given.get("q"), given.get("center", True)),
)
def pca_lowrank(x, q=None, center=True, niter=2, name=None):
    return principal_parts(x, best_principal(x, parts_of(x, q), center), q, center)


def best_principal(x, q, center):
    return best_parts(x - x.mean(-2, keepdim=True) if center else x, q)


def _eigh(x, found, lower):
    values, vectors = found
    matrix = residuals.triangle(x, lower)
    return {
        "values": values,
        "factors": on_host(residuals.of_eigen(matrix, values, vectors, residuals.orthonormal)),
    }


@api(
    "paddle.linalg.eigh",
    x=mirrored,
    grad=UP_TO_SIGN,
    traits=SPECTRAL,
    shown=lambda found, given: _eigh(given["x"], found, given.get("UPLO", "L") == "L"),
)
def eigh(x, UPLO="L", name=None):
    return _eigh(x, torch.linalg.eigh(x, UPLO), UPLO == "L")


same('x, UPLO="L", name=None', *spread("eigvalsh", *LINALG), home="torch.linalg", x=mirrored, traits=SPECTRAL)


def _eig(x, found):
    values, vectors = found
    seen = residuals.of_eigen(residuals.array_of(x), values, vectors, residuals.unit_columns)
    return {"values": values, "factors": on_host(seen)}


@api(
    *spread("eig", *LINALG),
    equal=("sorted", "value"),
    grad=UP_TO_SIGN,
    traits=SPECTRAL,
    shown=lambda found, given: _eig(given["x"], found),
)
def eig(x, name=None):
    return _eig(x, torch.linalg.eig(x))


same(
    "x, name=None",
    *spread("eigvals", *LINALG),
    home="torch.linalg",
    equal="sorted",
    grad="the values have no specified order, so an upstream gradient cannot be assigned to them",
    traits=SPECTRAL,
)


@api(*spread("lu", *LINALG))
def lu(x, pivot=True, get_infos=False, name=None):
    factors, pivots, info = torch.linalg.lu_factor_ex(x, pivot=pivot)
    return (factors, pivots, info) if get_infos else (factors, pivots)


def exchanges(x, this):
    """Each row is exchanged with itself or with the next."""
    if this.size > MANY:
        return None
    rows, count = x.shape[-2], this.shape[-1]
    return Literal([min(i % count + 1 + i // 2 % 2, rows) for i in range(this.size)])


_UNPACK = "x, y, unpack_ludata=True, unpack_pivots=True, name=None"
same(_UNPACK, *spread("lu_unpack", *LINALG), y=exchanges)


def in_int64(rank):
    """A tensor of either framework."""
    return rank.long() if hasattr(rank, "long") else rank.astype("int64")


@api(
    *spread("lstsq", *LINALG),
    x=invertible,
    grad=NO_BACKWARD,
    shown=lambda found, given: (*found[:2], in_int64(found[2]), found[3]),
    known_deviation=follows("the dtype of the rank, which depends on the device, is not compared"),
)
def lstsq(x, y, rcond=None, driver=None, name=None):
    """PyTorch returns no residuals for underdetermined systems."""
    solve = torch.linalg.lstsq
    if x.is_cuda and driver not in (None, "gels"):  # PyTorch has only the driver gels on GPUs
        solve = partial(on_cpu, solve)
    solution, residuals, rank, values = solve(x, y, rcond=rcond, driver=driver)
    if residuals.numel():
        residuals = torch.sum((x @ solution - y).abs() ** 2, -2)
    return solution, residuals, in_int64(rank), values


same("x, tau, name=None", *spread("householder_product", *LINALG), home="torch.linalg")


@api("paddle.linalg.lu_solve", lu=invertible, pivots=lambda lu, this: exchanges(lu, this))
def lu_solve(b, lu, pivots, trans="N", name=None):
    """`trans` is "N" (plain), "T" (transposed) or "C" (conjugate transposed)."""
    factors = torch.lu_unpack(lu, pivots)
    matrix = factors[0].to(lu.dtype) @ factors[1] @ factors[2]
    return torch.linalg.solve({"N": matrix, "T": matrix.mT, "C": matrix.mH}[trans], b)
