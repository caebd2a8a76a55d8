// ldmatrix and mma: all lanes of a warp must take part; the scheduler completes them.
#include "decoding.h"
#include "thread.h"

namespace fcm::ptx {

namespace {

void wait_for_warp(Thread &t, const Instruction &i) {
    t.waiting = Waiting();
    t.waiting.at = &i;
    t.waiting.collective = static_cast<Collective>(i.number);
    t.waiting.mask = 0xffffffff;
    t.state = State::collective;
}

void emit(Decoding &d, const MatrixOperation &operation, Collective collective) {
    std::vector<MatrixOperation> &all = d.function().function().matrices;
    all.push_back(operation);
    d.emit(wait_for_warp, {}, static_cast<int64_t>(collective), static_cast<uint32_t>(all.size() - 1));
}

// A vector of `count` registers of 32 bits; one register may be written without braces.
template <size_t Size>
void registers(Decoding &d, size_t operand, size_t count, bool targets, uint32_t (&slots)[Size]) {
    const Operand &o = d.operand(operand);
    const bool vector = o.kind == Operand::Kind::vector;
    if ((vector ? o.parts.size() : 1) != count) d.fail(std::to_string(count) + " registers expected");
    for (size_t k = 0; k < count; ++k) {
        const Operand &part = vector ? o.parts[k] : o;
        slots[k] = targets ? d.target(part, kWord) : d.source(part, kWord);
    }
}

void take_aligned(Decoding &d) {
    if (!d.take("sync") || !d.take("aligned")) d.fail("only .sync.aligned");
}

// ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16 {r0, r1, r2, r3}, [row]
void load(Decoding &d) {
    take_aligned(d);
    MatrixOperation operation;
    if (!d.take("m8n8")) d.fail("only .m8n8");
    if (d.take("x1")) operation.count = 1;
    else if (d.take("x2")) operation.count = 2;
    else if (d.take("x4")) operation.count = 4;
    else d.fail(".x1, .x2 or .x4 expected");
    operation.transposed = d.take("trans");
    operation.generic = !d.take("shared") && !d.take("shared::cta");
    if (!d.take("b16")) d.fail("only .b16");
    d.finish();
    d.expect_operands(2);
    registers(d, 0, operation.count, true, operation.d);
    const Address address = d.address(1);
    operation.address = address.base;
    operation.offset = address.offset;
    emit(d, operation, Collective::load_matrices);
}

// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d, a, b, c
void multiply(Decoding &d) {
    take_aligned(d);
    MatrixOperation operation;
    if (d.take("m16n8k16")) operation.depth = 16;
    else if (d.take("m16n8k8")) operation.depth = 8;
    else if (d.take("m16n8k4")) operation.depth = 4;
    else d.fail("a shape that this interpreter does not know");
    if (!d.take("row") || !d.take("col")) d.fail("only .row.col");
    const Type result = d.take_type(), a = d.take_type(), b = d.take_type(), c = d.take_type();
    d.finish();
    d.expect_operands(4);
    if (!result.is(Kind::real, 32) || result != c) d.fail("only sums of f32");
    if (a != b || (a.kind != Kind::brain && a.kind != Kind::tensor)) d.fail("only factors of bf16 or tf32");
    operation.tensor = a.kind == Kind::tensor;
    if (operation.depth == (operation.tensor ? 16u : 4u)) d.fail("not a shape of this type");
    // A register has one tf32 or two bf16, and a lane four columns of the former or eight of the latter.
    const size_t steps = operation.depth / (operation.tensor ? 4 : 8);
    registers(d, 0, 4, true, operation.d);
    registers(d, 1, 2 * steps, false, operation.a);
    registers(d, 2, steps, false, operation.b);
    registers(d, 3, 4, false, operation.c);
    emit(d, operation, Collective::multiply_matrices);
}

}  // namespace

bool decode_matrix(Decoding &d) {
    if (d.opcode() == "ldmatrix") load(d);
    else if (d.opcode() == "mma") multiply(d);
    else return false;
    return true;
}

}  // namespace fcm::ptx
