// ld, st, prefetch, fences.
#include "access.h"
#include "decoding.h"

namespace fcm::ptx {

namespace {

template <unsigned Bytes>
uint64_t read_bytes(const uint8_t *from) {
    if constexpr (Bytes == 1) {
        return *from;
    } else if constexpr (Bytes == 2) {
        uint16_t v;
        std::memcpy(&v, from, sizeof v);
        return v;
    } else if constexpr (Bytes == 4) {
        uint32_t v;
        std::memcpy(&v, from, sizeof v);
        return v;
    } else {
        uint64_t v;
        std::memcpy(&v, from, sizeof v);
        return v;
    }
}

uint64_t address_of(const Thread &t, const Instruction &i) {
    return t.registers[i.slot[4]] + static_cast<uint64_t>(i.number);
}

template <class Space, Strength S, unsigned Bytes, unsigned Count>
void load(Thread &t, const Instruction &i) {
    const uint8_t *from = Space::template read<S>(t, i, address_of(t, i), Bytes * Count);
    const unsigned width = i.slot[5] & kWidthMask;
    for (unsigned k = 0; k < Count; ++k) {
        uint64_t v = read_bytes<Bytes>(from + k * Bytes);
        // A signed value narrower than its register is sign-extended.
        if (width != 0 && (v >> (Bytes * 8 - 1) & 1)) v = (v | ~low_bits(Bytes * 8)) & low_bits(width);
        t.registers[i.slot[k]] = v;
    }
}

template <unsigned Bytes, unsigned Count>
void put(const Thread &t, const Instruction &i, uint8_t *to) {
    // The host is little-endian, as a GPU is.
    for (unsigned k = 0; k < Count; ++k) std::memcpy(to + k * Bytes, &t.registers[i.slot[k]], Bytes);
}

template <class Space, unsigned Bytes, unsigned Count>
void store(Thread &t, const Instruction &i) {
    put<Bytes, Count>(t, i, Space::write(t, i, address_of(t, i), Bytes * Count));
}

template <class Space, unsigned Bytes, unsigned Count>
void store_strong(Thread &t, const Instruction &i) {
    const Use use{false, true, false, (i.slot[5] & kRelease) != 0};
    put<Bytes, Count>(t, i, Space::strong(t, i, address_of(t, i), Bytes * Count, use));
}

// Calls `pick` with the two constants that it needs.
template <class Pick>
Handler by_shape(const Decoding &d, unsigned bytes, unsigned count, Pick pick) {
    const auto with_count = [&](auto b) -> Handler {
        switch (count) {
            case 1: return pick(b, std::integral_constant<unsigned, 1>());
            case 2: return pick(b, std::integral_constant<unsigned, 2>());
            case 4: return pick(b, std::integral_constant<unsigned, 4>());
            default: d.fail("a vector of this length");
        }
    };
    switch (bytes) {
        case 1: return with_count(std::integral_constant<unsigned, 1>());
        case 2: return with_count(std::integral_constant<unsigned, 2>());
        case 4: return with_count(std::integral_constant<unsigned, 4>());
        case 8: return with_count(std::integral_constant<unsigned, 8>());
        default: d.fail("not with this type");
    }
}

template <class Space, Strength S>
Handler load_handler(const Decoding &d, unsigned bytes, unsigned count) {
    return by_shape(d, bytes, count, [](auto b, auto c) -> Handler {
        return load<Space, S, decltype(b)::value, decltype(c)::value>;
    });
}

template <class Space>
Handler store_handler(const Decoding &d, unsigned bytes, unsigned count) {
    return by_shape(d, bytes, count, [](auto b, auto c) -> Handler {
        return store<Space, decltype(b)::value, decltype(c)::value>;
    });
}

template <class Space>
Handler strong_store_handler(const Decoding &d, unsigned bytes, unsigned count) {
    return by_shape(d, bytes, count, [](auto b, auto c) -> Handler {
        return store_strong<Space, decltype(b)::value, decltype(c)::value>;
    });
}

enum class Where { generic, global, shared, local, param, constant };

Where take_space(Decoding &d) {
    if (d.take("global")) return Where::global;
    if (d.take("shared") || d.take("shared::cta")) return Where::shared;
    if (d.take("local")) return Where::local;
    if (d.take("param") || d.take("param::entry") || d.take("param::func")) return Where::param;
    if (d.take("const")) return Where::constant;
    return Where::generic;
}

struct Ordering {
    bool strong = false, acquire = false, release = false, read_only = false;
};

// Cache hints have no effect; memory ordering and scope do.
Ordering take_ordering(Decoding &d) {
    Ordering result;
    if (d.take("weak")) return result;
    if (d.take("volatile") || d.take("relaxed")) result.strong = true;
    if (d.take("acquire")) result.strong = result.acquire = true;
    if (d.take("release")) result.strong = result.release = true;
    if (result.strong) {
        if (!d.take("cta") && !d.take("gpu") && !d.take("sys")) d.take("cluster");
    }
    result.read_only = d.take("nc");
    for (const char *hint : {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged",
                             "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B",
                                 "L2::256B"}) {
        d.take(hint);
    }
    return result;
}

unsigned take_count(Decoding &d) {
    if (d.take("v2")) return 2;
    if (d.take("v4")) return 4;
    return 1;
}

struct Shape {
    Where where;
    Ordering ordering;
    unsigned count;
    Type type;
};

Shape take_shape(Decoding &d) {
    Shape s;
    s.ordering = take_ordering(d);
    s.where = take_space(d);
    s.count = take_count(d);
    s.type = d.take_type();
    d.finish();
    d.expect_operands(2);
    if (s.type.kind == Kind::predicate) d.fail("a predicate in memory");
    return s;
}

const Operand &element(const Decoding &d, size_t operand, unsigned count, unsigned k) {
    const Operand &o = d.operand(operand);
    if (count == 1) return o;
    if (o.kind != Operand::Kind::vector || o.parts.size() != count) {
        d.fail(std::to_string(count) + " registers expected");
    }
    return o.parts[k];
}

// The size of a named variable is known, so out-of-bounds offsets are found when decoding.
void inside_variable(const Decoding &d, const Address &address, unsigned size) {
    if (address.symbol == nullptr || address.symbol->kind == Symbol::Kind::dynamic_shared) return;
    const uint64_t bytes = address.symbol->bytes;
    if (address.offset < 0 || static_cast<uint64_t>(address.offset) + size > bytes) d.fail("outside the variable");
}

// ld.param and st.param access the frame in a function; in an entry they access the parameters or the arguments of calls.
enum class Parameters { entry, frame, local };

Parameters parameters_of(Decoding &d, const Address &address) {
    if (address.symbol == nullptr) return d.function().function().entry ? Parameters::entry : Parameters::local;
    if (address.symbol->kind == Symbol::Kind::entry_parameter) return Parameters::entry;
    if (address.symbol->kind == Symbol::Kind::frame) return Parameters::frame;
    d.fail("not a parameter");
}

Instruction &emit(Decoding &d, Handler handler, const uint32_t (&slots)[4], const Address &address, uint32_t style) {
    const uint32_t access = d.function().module().accesses++;
    return d.emit(handler, {slots[0], slots[1], slots[2], slots[3], address.base, style}, address.offset, access);
}

// The frame's own memory needs no base: the offset is fixed.
Address in_frame(Decoding &d, const Address &address) {
    Address result = address;
    result.base = d.function().constant(0);
    result.offset += static_cast<int64_t>(address.symbol->offset);
    return result;
}

template <class Space>
Handler load_of(const Decoding &d, const Shape &s) {
    if (s.ordering.strong) return load_handler<Space, Strength::strong>(d, s.type.bytes(), s.count);
    return load_handler<Space, Strength::weak>(d, s.type.bytes(), s.count);
}

void decode_load(Decoding &d) {
    const Shape s = take_shape(d);
    uint32_t slots[4] = {};
    unsigned width = 0;
    for (unsigned k = 0; k < s.count; ++k) slots[k] = d.target_or_wider(element(d, 0, s.count, k), s.type, width);
    uint32_t style = s.type.kind == Kind::integer ? width : 0;
    if (s.ordering.acquire) style |= kAcquire;
    Address address = d.address(1);
    inside_variable(d, address, s.type.bytes() * s.count);
    const unsigned bytes = s.type.bytes();
    if (s.ordering.read_only && s.where != Where::global) d.fail(".nc is for the space global");
    Handler handler = nullptr;
    switch (s.where) {
        case Where::global:
            handler = s.ordering.read_only ? load_handler<GlobalSpace, Strength::read_only>(d, bytes, s.count)
                                           : load_of<GlobalSpace>(d, s);
            break;
        // Constants are in device memory here, where stores are refused.
        case Where::constant: handler = load_of<GlobalSpace>(d, s); break;
        case Where::generic: handler = load_of<GenericSpace>(d, s); break;
        case Where::shared: handler = load_of<SharedSpace>(d, s); break;
        case Where::local: handler = load_handler<LocalSpace, Strength::weak>(d, bytes, s.count); break;
        case Where::param:
            switch (parameters_of(d, address)) {
                case Parameters::entry:
                    handler = load_handler<ParameterSpace, Strength::weak>(d, bytes, s.count);
                    break;
                case Parameters::local: handler = load_handler<LocalSpace, Strength::weak>(d, bytes, s.count); break;
                case Parameters::frame:
                    address = in_frame(d, address);
                    handler = load_handler<FrameSpace, Strength::weak>(d, bytes, s.count);
                    break;
            }
            break;
    }
    emit(d, handler, slots, address, style);
}

template <class Space>
Handler store_of(const Decoding &d, const Shape &s) {
    if (s.ordering.strong) return strong_store_handler<Space>(d, s.type.bytes(), s.count);
    return store_handler<Space>(d, s.type.bytes(), s.count);
}

void decode_store(Decoding &d) {
    const Shape s = take_shape(d);
    if (s.ordering.read_only || s.ordering.acquire) d.fail("not of a store");
    uint32_t slots[4] = {};
    for (unsigned k = 0; k < s.count; ++k) slots[k] = d.source_or_wider(element(d, 1, s.count, k), s.type);
    Address address = d.address(0);
    const unsigned bytes = s.type.bytes();
    inside_variable(d, address, bytes * s.count);
    Handler handler = nullptr;
    switch (s.where) {
        case Where::global: handler = store_of<GlobalSpace>(d, s); break;
        case Where::generic: handler = store_of<GenericSpace>(d, s); break;
        case Where::shared: handler = store_of<SharedSpace>(d, s); break;
        case Where::local: handler = store_handler<LocalSpace>(d, bytes, s.count); break;
        case Where::constant: d.fail("a store to a constant");
        case Where::param:
            switch (parameters_of(d, address)) {
                case Parameters::entry: d.fail("a store to a kernel's parameter");
                case Parameters::local: handler = store_handler<LocalSpace>(d, bytes, s.count); break;
                case Parameters::frame:
                    address = in_frame(d, address);
                    handler = store_handler<FrameSpace>(d, bytes, s.count);
                    break;
            }
            break;
    }
    emit(d, handler, slots, address, s.ordering.release ? kRelease : 0);
}

// The thread's next atomic can release its accesses so far, and values read by earlier atomics are now acquired.
void fence(Thread &t, const Instruction &) {
    Accessor &by = t.accessor;
    by.time = ++t.block->time;
    by.known.join(by.pending);
    by.pending.clear();
    if (!by.fence) by.fence = std::make_unique<Release>();
    by.fence->stamp = by.stamp();
    by.fence->barrier = by.barrier;
    by.fence->seen = by.seen;
}

// A fence with block scope: it does not order blocks, and within a block kernels use barriers.
void no_effect(Thread &, const Instruction &) {}

void decode_fence(Decoding &d) {
    bool wide = false;
    if (d.opcode() == "membar") {
        wide = d.take("gl") || d.take("sys");
        if (!wide && !d.take("cta")) d.fail(".cta, .gl or .sys expected");
    } else {
        if (!d.take("sc") && !d.take("acq_rel")) d.fail(".sc or .acq_rel expected");
        wide = d.take("gpu") || d.take("sys");
        if (!wide && !d.take("cta")) d.fail(".cta, .gpu or .sys expected");
    }
    d.finish();
    d.expect_operands(0);
    d.emit(wide ? fence : no_effect, {});
}

}  // namespace

bool decode_memory(Decoding &d) {
    const std::string &op = d.opcode();
    if (op == "ld" || op == "ldu") decode_load(d);
    else if (op == "st") decode_store(d);
    else if (op == "membar" || op == "fence") decode_fence(d);
    else return false;
    return true;
}

}  // namespace fcm::ptx
