// Compiled with -frounding-math; the volatile variables keep the arithmetic between the two switches of the mode.
#include "rounding.h"

#include <cfenv>
#include <cmath>

namespace fcm::ptx::rounded {

namespace {

int host_mode(Rounding rounding) {
    switch (rounding) {
        case Rounding::zero: return FE_TOWARDZERO;
        case Rounding::down: return FE_DOWNWARD;
        case Rounding::up: return FE_UPWARD;
        case Rounding::nearest: break;
    }
    return FE_TONEAREST;
}

class Mode {
public:
    explicit Mode(Rounding rounding) : before_(std::fegetround()) { std::fesetround(host_mode(rounding)); }
    ~Mode() { std::fesetround(before_); }
    Mode(const Mode &) = delete;
    Mode &operator=(const Mode &) = delete;

private:
    int before_;
};

}  // namespace

template <class T>
T add(T a, T b, Rounding rounding) {
    const Mode mode(rounding);
    volatile T x = a, y = b;
    volatile T result = x + y;
    return result;
}

template <class T>
T multiply(T a, T b, Rounding rounding) {
    const Mode mode(rounding);
    volatile T x = a, y = b;
    volatile T result = x * y;
    return result;
}

template <class T>
T divide(T a, T b, Rounding rounding) {
    const Mode mode(rounding);
    volatile T x = a, y = b;
    volatile T result = x / y;
    return result;
}

template <class T>
T root(T a, Rounding rounding) {
    const Mode mode(rounding);
    volatile T x = a;
    volatile T result = std::sqrt(x);
    return result;
}

template <class T>
T fused(T a, T b, T c, Rounding rounding) {
    const Mode mode(rounding);
    volatile T x = a, y = b, z = c;
    volatile T result = std::fma(x, y, z);
    return result;
}

template <class To, class From>
To convert(From a, Rounding rounding) {
    const Mode mode(rounding);
    volatile From x = a;
    volatile To result = static_cast<To>(x);
    return result;
}

template float add(float, float, Rounding);
template double add(double, double, Rounding);
template float multiply(float, float, Rounding);
template double multiply(double, double, Rounding);
template float divide(float, float, Rounding);
template double divide(double, double, Rounding);
template float root(float, Rounding);
template double root(double, Rounding);
template float fused(float, float, float, Rounding);
template double fused(double, double, double, Rounding);
template float convert<float, double>(double, Rounding);
template float convert<float, int64_t>(int64_t, Rounding);
template float convert<float, uint64_t>(uint64_t, Rounding);
template double convert<double, int64_t>(int64_t, Rounding);
template double convert<double, uint64_t>(uint64_t, Rounding);

}  // namespace fcm::ptx::rounded
