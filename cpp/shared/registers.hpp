// Eight numbers in vector registers: two for AVX, four for SSE2 and NEON.
//
// Compilers keep arrays of sums in memory where a loop adds to them; values of this type stay in
// registers. Only loops in which a benchmark shows that this pays use it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#if defined(__GNUC__) && defined(__AVX__)
#include <immintrin.h>
#elif defined(__GNUC__) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "arrays.hpp"

namespace conepursuit {

// a * b + c: rounded once where the processor can do so in one instruction, else twice.
//
// clang does not reorder sums of std::fma, but fuses what it is allowed to; gcc does the opposite.
inline double fused(double a, double b, double c) {
#if defined(__clang__)
#pragma clang fp contract(fast)
    return a * b + c;
#elif defined(__FMA__) || defined(__aarch64__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

// Call work(0), ..., work(COUNT - 1), written out: gcc keeps an array in registers only if all its
// indices are constants.
template <Index COUNT, class Work>
inline void each(Work &&work) {
    [&]<Index... I>(std::integer_sequence<Index, I...>) {
        (work(I), ...);
    }(std::make_integer_sequence<Index, COUNT>());
}

#if defined(__GNUC__) && defined(__AVX__)
constexpr Index LANES_EACH = 4;
#else
constexpr Index LANES_EACH = 2;
#endif

#if defined(__GNUC__)
using Register [[gnu::vector_size(8 * LANES_EACH)]] = double;
struct [[gnu::packed, gnu::may_alias]] Unaligned {
    Register value;
};
inline Register load_register(const double *p) {
    return reinterpret_cast<const Unaligned *>(p)->value;
}
inline void store_register(double *p, Register a) { reinterpret_cast<Unaligned *>(p)->value = a; }
inline Register larger(Register a, Register b) { return a > b ? a : b; }
#else
struct Register {
    double lane[LANES_EACH];
    double &operator[](Index l) { return lane[l]; }
    double operator[](Index l) const { return lane[l]; }
};
inline Register load_register(const double *p) { return {p[0], p[1]}; }
inline void store_register(double *p, Register a) { p[0] = a[0], p[1] = a[1]; }
inline Register operator+(Register a, Register b) { return {a[0] + b[0], a[1] + b[1]}; }
inline Register operator*(Register a, Register b) { return {a[0] * b[0], a[1] * b[1]}; }
inline Register larger(Register a, Register b) {
    return {a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1]};
}
#endif

// a * b + c, as `fused` of numbers.
inline Register fused(Register a, Register b, Register c) {
#if defined(__FMA__)
    return _mm256_fmadd_pd(a, b, c);
#elif defined(__aarch64__)
    return vfmaq_f64(c, a, b);
#else
    return a * b + c;
#endif
}

inline Register spread(double s) {
    Register out{};
    for (Index l = 0; l < LANES_EACH; l++) out[l] = s;
    return out;
}

inline double total(Register a) {
    double out = a[0];
    for (Index l = 1; l < LANES_EACH; l++) out += a[l];
    return out;
}

// Eight numbers.
struct Eight {
    static constexpr Index PARTS = WIDTH / LANES_EACH;
    Register part[PARTS] = {};

    static Eight load(const double *p) {
        Eight out;
        each<PARTS>([&](Index i) { out.part[i] = load_register(p + i * LANES_EACH); });
        return out;
    }
    void store(double *p) const {
        each<PARTS>([&](Index i) { store_register(p + i * LANES_EACH, part[i]); });
    }
    // Add a * b, or a weight times eight numbers.
    void add(const Eight &a, const Eight &b) {
        each<PARTS>([&](Index i) { part[i] = fused(a.part[i], b.part[i], part[i]); });
    }
    void add(Register weight, const Eight &b) {
        each<PARTS>([&](Index i) { part[i] = fused(weight, b.part[i], part[i]); });
    }
    void add(Register weight, const double *b) {
        each<PARTS>([&](Index i) {
            part[i] = fused(weight, load_register(b + i * LANES_EACH), part[i]);
        });
    }
    Eight operator*(const Eight &other) const {
        Eight out;
        each<PARTS>([&](Index i) { out.part[i] = part[i] * other.part[i]; });
        return out;
    }
    double sum() const {
        Register all = part[0];
        for (Index i = 1; i < PARTS; i++) all = all + part[i];
        return total(all);
    }
    double largest() const {
        Register top = part[0];
        for (Index i = 1; i < PARTS; i++) top = larger(top, part[i]);
        double out = top[0];
        for (Index l = 1; l < LANES_EACH; l++) out = std::max(out, top[l]);
        return out;
    }
};

// Bits for the numbers that are at least `cut`.
inline unsigned at_least(const Eight &a, double cut) {
#if defined(__GNUC__) && defined(__AVX__)
    __m256d const least = _mm256_set1_pd(cut);
    int const low = _mm256_movemask_pd(_mm256_cmp_pd(a.part[0], least, _CMP_GE_OQ));
    int const high = _mm256_movemask_pd(_mm256_cmp_pd(a.part[1], least, _CMP_GE_OQ));
    return unsigned(low | high << 4);
#else
    unsigned bits = 0;
    for (Index l = 0; l < WIDTH; l++) {
        bits |= unsigned(a.part[l / LANES_EACH][l % LANES_EACH] >= cut) << l;
    }
    return bits;
#endif
}

inline Eight larger(const Eight &a, const Eight &b) {
    Eight out;
    each<Eight::PARTS>([&](Index i) { out.part[i] = larger(a.part[i], b.part[i]); });
    return out;
}

// Call `work.template operator()<COUNT>(j)` for blocks of COUNT eights that cover `width` numbers,
// COUNT at most four: as many sums as the registers hold.
template <class Work>
inline void in_blocks(Index width, Work &&work) {
    Index j = 0;
    for (; j + 4 * WIDTH <= width; j += 4 * WIDTH) work.template operator()<4>(j);
    switch ((width - j) / WIDTH) {
        case 3: return work.template operator()<3>(j);
        case 2: return work.template operator()<2>(j);
        case 1: return work.template operator()<1>(j);
        default: return;
    }
}

}  // namespace conepursuit
