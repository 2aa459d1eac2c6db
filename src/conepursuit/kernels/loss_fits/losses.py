r"""Losses of one entry, and all that Newton's method and the dual bound ask of them.

=================  ============================================  ==========  ==============
loss               l(x, y)                                       parameter   domain
=================  ============================================  ==========  ==============
SQUARED            (x - y)^2 / 2                                 none        all x
LOGISTIC           log(1 + exp(-y x)), y = +-1                   none        all x
KULLBACK_LEIBLER   Y log(Y / X) - Y + X; X = x + e, Y = y + e    e >= 0      X > 0; >= 0 if Y = 0
HUBER              r^2 / 2, beyond d: d |r| - d^2 / 2; r = x-y   d > 0       all x
BETA               (y^b + (b-1) x^b - b y x^(b-1)) / (b (b-1))   1 < b < 2   x > 0; >= 0 if y = 0
ONE_SIDED          min(x - y, 0)^2 / 2                           none        all x
=================  ============================================  ==========  ==============

All are non-negative, with infimum 0; the last serves to find a start in a domain. Two divergences
are needed, where l* is the conjugate of l:

- D(x, z) = l(x) - l(z) - l'(z) (x - z), how far l is above its tangent at z (Bregman);
- l(x) + l*(v) - v x, zero where v = l'(x) (Fenchel and Young). It is D(x, z) where v = l'(z).

Both are computed by formulas in which nothing cancels, with

    power_remainder(h, p) = ((1 + h)^p - 1) / p - h,   and log(1 + h) - h in the limit p = 0.
"""

from __future__ import annotations

import math

from numba import njit

from conepursuit.kernels.constants import (
    BETA,
    EPS,
    HUBER,
    KULLBACK_LEIBLER,
    LOGISTIC,
    ONE_SIDED,
    SQUARED,
)

SERIES = 0.05
"""Below this |h| `power_remainder` is a power series, of which 12 terms reach full precision.

Above, it is computed by its formula, in which few digits cancel.
"""


@njit(cache=True, nogil=True, error_model="numpy")
def power_remainder(h: float, power: float) -> float:
    """Return ((1 + h)^p - 1) / p - h, or log(1 + h) - h if p = 0, to full relative precision."""
    if abs(h) < SERIES:
        term, total = h, 0.0
        for i in range(2, 14):
            term *= h * (power - i + 1) / i
            total += term
        return total
    if power == 0.0:
        return math.log1p(h) - h
    return math.expm1(power * math.log1p(h)) / power - h


@njit(cache=True, nogil=True, error_model="numpy")
def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x)), to full relative precision also where it is small."""
    small = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@njit(cache=True, nogil=True)
def softplus(x: float) -> float:
    """Return log(1 + exp(x))."""
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


@njit(cache=True, nogil=True)
def clipped_young(beyond: float, change: float) -> float:
    """Return what `young` does for a loss that is a parabola up to a point and linear after it.

    x is `beyond` that point by this distance, which is negative on the parabola.
    """
    return abs(change) * max(beyond, 0.0) + 0.5 * change**2


@njit(cache=True, nogil=True, error_model="numpy")
def beta_divergence(power: float, y: float, x: float, z: float) -> float:
    """Return D(x, z) for the beta loss; z may be 0 if y is."""
    if z == 0.0:
        return math.pow(x, power) / power
    h = (x - z) / z
    rise = math.pow(z, power) * power_remainder(h, power)
    if y > 0.0:
        rise -= y * math.pow(z, power - 1.0) * power_remainder(h, power - 1.0)
    return rise


@njit(cache=True, nogil=True, error_model="numpy")
def loss(code: int, parameter: float, y: float, x: float) -> float:
    """Return l(x, y); infinity outside the domain."""
    if code == SQUARED:
        return 0.5 * (x - y) ** 2
    if code == LOGISTIC:
        return softplus(-y * x)
    if code == HUBER:
        return clipped_young(abs(x - y) - parameter, -slope(code, parameter, y, x))
    if code == ONE_SIDED:
        return 0.5 * min(x - y, 0.0) ** 2
    if code == KULLBACK_LEIBLER:
        x, y = x + parameter, y + parameter
        if y == 0.0:
            return x if x >= 0.0 else math.inf
        if x < 0.5 * y:
            return x - y - y * math.log(x / y) if x > 0.0 else math.inf
        return -y * power_remainder((x - y) / y, 0.0)
    return beta_divergence(parameter, y, x, y) if x >= 0.0 else math.inf


@njit(cache=True, nogil=True, error_model="numpy")
def size(code: int, parameter: float, y: float, x: float) -> float:
    """Return the sum of the absolute values of the terms of l.

    The rounding of l is a few units in the last place of this sum, even where the terms cancel.
    """
    if code == LOGISTIC:
        return softplus(-y * x) + sigmoid(-y * x) * abs(x)
    if code == KULLBACK_LEIBLER:
        return x + y + 2.0 * parameter
    span = abs(x) + abs(y)
    if code == BETA:
        return math.pow(span, parameter) / (parameter * (parameter - 1.0))
    return span * (min(span, parameter) if code == HUBER else span)


@njit(cache=True, nogil=True)
def margin(code: int, parameter: float, y: float, x: float) -> float:
    """Return the distance of x from the end of the domain; x is outside if that is not positive.

    It is inf where the domain has no end, and at an end that belongs to the domain.
    """
    if code == KULLBACK_LEIBLER:
        return x + parameter if x + parameter != 0.0 or y + parameter > 0.0 else math.inf
    if code == BETA:
        return x if x != 0.0 or y > 0.0 else math.inf
    return math.inf


@njit(cache=True, nogil=True, error_model="numpy")
def slope(code: int, parameter: float, y: float, x: float) -> float:
    """Return l'(x)."""
    if code == SQUARED:
        return x - y
    if code == LOGISTIC:
        return -y * sigmoid(-y * x)
    if code == KULLBACK_LEIBLER:
        return (x - y) / (x + parameter) if y + parameter > 0.0 else 1.0
    if code == HUBER:
        return min(max(x - y, -parameter), parameter)
    if code == ONE_SIDED:
        return min(x - y, 0.0)
    if y == 0.0:
        return math.pow(x, parameter - 1.0)
    return math.pow(x, parameter - 2.0) * (x - y)


@njit(cache=True, nogil=True, error_model="numpy")
def curvature(code: int, parameter: float, y: float, x: float) -> float:
    """Return l''(x)."""
    if code == SQUARED:
        return 1.0
    if code == LOGISTIC:
        return sigmoid(x) * sigmoid(-x)
    if code == KULLBACK_LEIBLER:
        return (y + parameter) / (x + parameter) ** 2 if y + parameter > 0.0 else 0.0
    if code == HUBER:
        return 1.0 if abs(x - y) <= parameter else 0.0
    if code == ONE_SIDED:
        return 1.0 if x < y else 0.0
    tangent = parameter - 1.0 + ((2.0 - parameter) * y / x if y > 0.0 else 0.0)
    return tangent * math.pow(x, parameter - 2.0)


@njit(cache=True, nogil=True, error_model="numpy")
def chord(code: int, parameter: float, y: float, x: float) -> float:
    """Return the curvature l'(x) / (x - z), where z minimises l.

    The parabola with this curvature that touches l at x has its least value at z. The logistic loss
    has no minimiser; tanh(x / 2) / (2 x) is returned, the curvature of the lowest parabola above it
    that touches it at x.
    """
    if code == LOGISTIC:
        return 0.5 * math.tanh(0.5 * x) / x if x != 0.0 else 0.25
    if code == KULLBACK_LEIBLER:
        return 1.0 / (x + parameter)
    if code == HUBER:
        return min(1.0, parameter / abs(x - y))
    if code == BETA:
        return math.pow(x, parameter - 2.0)
    return 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def relative_entropy(q: float, rest: float, change: float) -> float:
    """Return p log(p / q) + (1 - p) log((1 - p) / rest), where p = q + change and rest = 1 - q.

    It is q f(change / q) + rest f(-change / rest) with f(t) = (1 + t) log(1 + t) - t >= 0.
    """
    total = 0.0
    for side in range(2):
        part, more = (q, change) if side == 0 else (rest, -change)
        if more != 0.0:
            t = more / part
            if not t >= -1.0 - 8.0 * EPS:  # negative by more than the rounding of q
                return math.inf
            total += part if t <= -1.0 else -part * (1.0 + t) * power_remainder(-t / (1.0 + t), 0.0)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def divergence(code: int, parameter: float, y: float, x: float, z: float) -> float:
    """Return D(x, z) = l(x) - l(z) - l'(z) (x - z) for x and z in the domain."""
    if code == SQUARED:
        return 0.5 * (x - z) ** 2
    if code == LOGISTIC:
        a = y * (x - z)
        if abs(a) > 30.0:  # x and z are so far apart that nothing cancels
            return softplus(-y * x) - softplus(-y * z) + sigmoid(-y * z) * a
        q, rest, odds = sigmoid(-y * x), sigmoid(y * x), math.expm1(a)
        return relative_entropy(q, rest, q * rest * odds / (1.0 + q * odds))
    if code == KULLBACK_LEIBLER:
        y = y + parameter
        return -y * power_remainder((x - z) / (z + parameter), 0.0) if y > 0.0 else 0.0
    if code == HUBER:
        change = slope(code, parameter, y, z) - slope(code, parameter, y, x)
        return clipped_young(abs(x - y) - parameter, change)
    if code == ONE_SIDED:
        change = slope(code, parameter, y, z) - slope(code, parameter, y, x)
        return clipped_young(x - y, change)
    return beta_divergence(parameter, y, x, z)


@njit(cache=True, nogil=True, error_model="numpy")
def young(code: int, parameter: float, y: float, x: float, change: float) -> float:
    """Return l(x) + l*(v) - v x, where v = l'(x) + change; infinity outside the domain of l*."""
    if code == SQUARED:
        return 0.5 * change**2
    if code == LOGISTIC:
        return relative_entropy(sigmoid(-y * x), sigmoid(y * x), -y * change)
    if code == KULLBACK_LEIBLER:
        x, y = x + parameter, y + parameter
        if y == 0.0:
            return -x * change if change <= 0.0 else math.inf
        h = -change * x / y
        return -y * power_remainder(h, 0.0) if h > -1.0 else math.inf
    v = slope(code, parameter, y, x) + change
    if code == HUBER:
        if abs(v) > parameter:
            return math.inf
        return clipped_young(abs(x - y) - parameter, change)
    if code == ONE_SIDED:
        return clipped_young(x - y, change) if v <= 0.0 else math.inf
    return beta_divergence(parameter, y, x, attained(code, parameter, y, v))


@njit(cache=True, nogil=True, error_model="numpy")
def attained(code: int, parameter: float, y: float, v: float) -> float:
    """Return an x with l'(x) = v, which is the slope of l* at v."""
    if code in (SQUARED, HUBER, ONE_SIDED):
        return y + v
    if code == LOGISTIC:
        return y * math.log((1.0 + y * v) / (-y * v))
    if code == KULLBACK_LEIBLER:
        y = y + parameter
        return (y / (1.0 - v) if y > 0.0 else 0.0) - parameter
    if y == 0.0:
        return math.pow(max(v, 0.0), 1.0 / (parameter - 1.0))
    return y * math.exp(beta_root(parameter, v / math.pow(y, parameter - 1.0)))


@njit(cache=True, nogil=True, error_model="numpy")
def beta_root(power: float, level: float) -> float:
    """Return the root s of exp((b - 1) s) - exp((b - 2) s) = level by guarded Newton steps.

    The left side increases with s and is 0 at s = 0. Its second term is below 1 for s > 0, and its
    first one for s < 0, which gives the bracket to start from.
    """
    low = min(0.0, -math.log1p(max(-level, 0.0)) / (2.0 - power))
    high = max(0.0, math.log1p(max(level, 0.0)) / (power - 1.0))
    s = min(max(level, low), high)
    for _ in range(100):
        grown, shrunk = math.exp((power - 1.0) * s), math.exp((power - 2.0) * s)
        miss = grown - shrunk - level
        if miss > 0.0:
            high = s
        else:
            low = s
        move = miss / ((power - 1.0) * grown + (2.0 - power) * shrunk)
        if abs(move) <= 4.0 * EPS * abs(s) or miss == 0.0:
            break
        s = s - move if low < s - move < high else 0.5 * (low + high)
    return s


@njit(cache=True, nogil=True, error_model="numpy")
def reach(code: int, parameter: float, y: float, x: float, v: float) -> float:
    """Return the largest s for which s v is in the domain of l*, and not too near an open end."""
    if code == LOGISTIC:
        p = -y * v
        if p > 0.0:
            return 1.0 / p
        return math.inf if p >= -4.0 * EPS * sigmoid(-y * x) else 0.0
    if code == HUBER:
        return parameter / abs(v)
    if code == ONE_SIDED:
        return math.inf if v <= 0.0 else 0.0
    if code == KULLBACK_LEIBLER and v > 0.0:
        x, y = x + parameter, y + parameter
        return max(1.0 - 0.5 * y / x, 0.5) / v if y > 0.0 else 1.0 / v
    return math.inf
