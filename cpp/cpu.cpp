// Which of the compiled modules this processor can run: the level of x86-64, 2 or 3, or 0 elsewhere.
// HIGHEST is the highest level that was built.
//
// Level 4, with AVX-512, was not faster where it was measured. Level 3 counts only if the operating
// system keeps its registers. The builtins of compilers for this need a library that not all of them
// can link into a module.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace {

#if defined(__x86_64__)
// Whether all bits of a mask are set.
bool has(unsigned word, unsigned mask) { return (word & mask) == mask; }

// The registers that the operating system keeps: bits of XCR0.
unsigned kept() {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

int level() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 2;
    constexpr unsigned FMA = 1u << 12, MOVBE = 1u << 22, OSXSAVE = 1u << 27, AVX = 1u << 28,
                       F16C = 1u << 29;
    if (!has(c, FMA | MOVBE | OSXSAVE | AVX | F16C) || !has(kept(), 0x06)) return 2;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 2;
    constexpr unsigned BMI1 = 1u << 3, AVX2 = 1u << 5, BMI2 = 1u << 8;
    if (!has(b, BMI1 | AVX2 | BMI2) || !__get_cpuid(0x80000001, &a, &b, &c, &d)) return 2;
    constexpr unsigned LZCNT = 1u << 5;
    return has(c, LZCNT) ? 3 : 2;
}
#else
int level() { return 0; }
#endif

PyObject *python_level(PyObject *, PyObject *) { return PyLong_FromLong(level() < HIGHEST ? level() : HIGHEST); }

PyMethodDef methods[] = {
    {"level", python_level, METH_NOARGS, "level()\n\nReturn the level of x86-64, 0 elsewhere."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_cpu", "The level of the processor.", -1, methods,
    nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&definition); }
