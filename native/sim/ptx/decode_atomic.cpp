// atom and red. Floating-point atomics are refused, because the order of the sum would depend on the scheduler.
#include "access.h"
#include "bits.h"
#include "decoding.h"

namespace fcm::ptx {

namespace {

enum class Atomic { add, min, max, bit_and, bit_or, bit_xor, exchange, compare, inc, dec };

template <class T, Atomic A>
T changed(T now, T b, T c) {
    switch (A) {
        case Atomic::add: return static_cast<T>(static_cast<std::make_unsigned_t<T>>(now) +
            static_cast<std::make_unsigned_t<T>>(b));
        case Atomic::min: return std::min(now, b);
        case Atomic::max: return std::max(now, b);
        case Atomic::bit_and: return now & b;
        case Atomic::bit_or: return now | b;
        case Atomic::bit_xor: return now ^ b;
        case Atomic::exchange: return b;
        case Atomic::compare: return now == b ? c : now;
        case Atomic::inc: return now >= b ? T(0) : static_cast<T>(now + 1);
        case Atomic::dec: return now == 0 || now > b ? b : static_cast<T>(now - 1);
    }
    return now;
}

template <class Space, class T, Atomic A>
void atomic(Thread &t, const Instruction &i) {
    const uint64_t address = t.registers[i.slot[4]] + static_cast<uint64_t>(i.number);
    const Use use{true, true, (i.slot[5] & kAcquire) != 0, (i.slot[5] & kRelease) != 0};
    uint8_t *at = Space::strong(t, i, address, sizeof(T), use);
    T now;
    std::memcpy(&now, at, sizeof now);
    const T then = changed<T, A>(now, value<T>(t.registers[i.slot[1]]), value<T>(t.registers[i.slot[2]]));
    std::memcpy(at, &then, sizeof then);
    t.registers[i.slot[0]] = raw(now);
}

template <class Space, class T>
Handler by_operation(Atomic a) {
    switch (a) {
        case Atomic::add: return atomic<Space, T, Atomic::add>;
        case Atomic::min: return atomic<Space, T, Atomic::min>;
        case Atomic::max: return atomic<Space, T, Atomic::max>;
        case Atomic::bit_and: return atomic<Space, T, Atomic::bit_and>;
        case Atomic::bit_or: return atomic<Space, T, Atomic::bit_or>;
        case Atomic::bit_xor: return atomic<Space, T, Atomic::bit_xor>;
        case Atomic::exchange: return atomic<Space, T, Atomic::exchange>;
        case Atomic::compare: return atomic<Space, T, Atomic::compare>;
        case Atomic::inc: return atomic<Space, T, Atomic::inc>;
        case Atomic::dec: return atomic<Space, T, Atomic::dec>;
    }
    return nullptr;
}

template <class Space>
Handler by_type(const Decoding &d, Type type, Atomic a) {
    const bool sign = type.kind == Kind::integer;
    if (type.bits == 32) return sign ? by_operation<Space, int32_t>(a) : by_operation<Space, uint32_t>(a);
    if (type.bits == 64) return sign ? by_operation<Space, int64_t>(a) : by_operation<Space, uint64_t>(a);
    d.fail("with 32 and 64 bits only");
}

Atomic take_operation(Decoding &d) {
    struct Name {
        const char *name;
        Atomic atomic;
    };
    static constexpr Name kNames[] = {{"add", Atomic::add}, {"min", Atomic::min}, {"max", Atomic::max},
                                      {"and", Atomic::bit_and}, {"or", Atomic::bit_or}, {"xor", Atomic::bit_xor},
                                      {"exch", Atomic::exchange}, {"cas", Atomic::compare}, {"inc", Atomic::inc},
                                      {"dec", Atomic::dec}};
    for (const Name &n : kNames) {
        if (d.take(n.name)) return n.atomic;
    }
    d.fail("no operation that this interpreter knows");
}

}  // namespace

bool decode_atomic(Decoding &d) {
    const bool returns = d.opcode() == "atom";
    if (!returns && d.opcode() != "red") return false;
    const Type type = d.take_type();
    if (!type.whole()) d.fail("an atomic on floating point, whose order nobody fixes");
    uint32_t style = 0;
    if (d.take("acquire")) style = kAcquire;
    else if (d.take("release")) style = kRelease;
    else if (d.take("acq_rel")) style = kAcquire | kRelease;
    else d.take("relaxed");
    if (!d.take("gpu") && !d.take("sys")) d.take("cta");
    const bool global = d.take("global"), shared = d.take("shared") || d.take("shared::cta");
    const Atomic a = take_operation(d);
    d.finish();
    if ((a == Atomic::inc || a == Atomic::dec) && !type.is(Kind::natural, 32)) d.fail("with u32 only");
    const bool three = a == Atomic::compare;
    const size_t first = returns ? 1 : 0;
    d.expect_operands(first + (three ? 3 : 2));
    const Handler handler = global   ? by_type<GlobalSpace>(d, type, a)
                            : shared ? by_type<SharedSpace>(d, type, a)
                                     : by_type<GenericSpace>(d, type, a);
    const uint32_t target = returns ? d.target(0, type) : d.function().scratch();
    const Address address = d.address(first);
    const uint32_t b = d.source(first + 1, type);
    const uint32_t c = three ? d.source(first + 2, type) : b;
    d.emit(handler, {target, b, c, c, address.base, style}, address.offset, d.function().module().accesses++);
    return true;
}

}  // namespace fcm::ptx
