// Arrays as kernels see them: a pointer and its extent, without ownership.
//
// With CHECKED defined, every index is compared with the extent and the process is aborted at the
// first that lies outside; `make sanitize` builds so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace conepursuit {

using Index = std::ptrdiff_t;

#ifdef CHECKED
inline void check(Index i, Index n) {
    if (i < 0 || i >= n) {
        std::fprintf(stderr, "index %td of an array of %td\n", i, n);
        std::abort();
    }
}
#else
inline void check(Index, Index) {}
#endif

// A vector: n numbers in a row of memory.
template <class T>
class Span {
  public:
    Span() = default;
    Span(T *data, Index n) : data_(data), n_(n) {}
    T &operator[](Index i) const {
        check(i, n_);
        return data_[i];
    }
    Index size() const { return n_; }
    bool empty() const { return n_ == 0; }
    T *data() const { return data_; }
    T *begin() const { return data_; }
    T *end() const { return data_ + n_; }
    Span part(Index first, Index n) const {
        check(first, n_ + 1);
        check(first + n, n_ + 1);
        return {data_ + first, n};
    }
    void fill(T value) const {
        for (Index i = 0; i < n_; i++) data_[i] = value;
    }
    operator Span<const T>() const { return {data_, n_}; }

  private:
    T *data_ = nullptr;
    Index n_ = 0;
};

// A matrix whose rows lie one after the other.
template <class T>
class Grid {
  public:
    Grid() = default;
    Grid(T *data, Index rows, Index columns) : data_(data), rows_(rows), columns_(columns) {}
    T &operator()(Index i, Index j) const {
        check(i, rows_);
        check(j, columns_);
        return data_[i * columns_ + j];
    }
    Span<T> operator[](Index i) const {
        check(i, rows_);
        return {data_ + i * columns_, columns_};
    }
    Index rows() const { return rows_; }
    Index columns() const { return columns_; }
    bool empty() const { return rows_ == 0; }
    T *data() const { return data_; }
    operator Grid<const T>() const { return {data_, rows_, columns_}; }

  private:
    T *data_ = nullptr;
    Index rows_ = 0, columns_ = 0;
};

using Vector = Span<double>;
using ConstVector = Span<const double>;
using Matrix = Grid<double>;
using ConstMatrix = Grid<const double>;
using Places = Span<std::int64_t>;
using ConstPlaces = Span<const std::int64_t>;

constexpr Index WIDTH = 8;  // numbers in a line of the cache

// n, rounded up to a multiple of the width.
constexpr Index padded(Index n) { return (n + WIDTH - 1) / WIDTH * WIDTH; }

// Memory of one call: zeros that begin at a line of the cache, given back at the end of its scope.
template <class T>
class Buffer {
  public:
    explicit Buffer(Index n)
        : data_(new (std::align_val_t(64)) T[static_cast<std::size_t>(n > 0 ? n : 1)]()), n_(n) {}
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { ::operator delete[](data_, std::align_val_t(64)); }
    operator Span<T>() const { return {data_, n_}; }
    operator Span<const T>() const { return {data_, n_}; }
    Span<T> span() const { return {data_, n_}; }
    T &operator[](Index i) const { return span()[i]; }

  private:
    T *data_;
    Index n_;
};

// The same for a matrix.
template <class T>
class Table {
  public:
    Table(Index rows, Index columns) : memory_(rows * columns), rows_(rows), columns_(columns) {}
    operator Grid<T>() const { return grid(); }
    operator Grid<const T>() const { return grid(); }
    Grid<T> grid() const { return {memory_.span().data(), rows_, columns_}; }
    Span<T> operator[](Index i) const { return grid()[i]; }
    T &operator()(Index i, Index j) const { return grid()(i, j); }

  private:
    Buffer<T> memory_;
    Index rows_, columns_;
};

}  // namespace conepursuit
