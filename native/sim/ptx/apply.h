// Instruction handlers built from arithmetic functions.
#pragma once

#include "thread.h"

namespace fcm::ptx {

template <class Op>
void apply1(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] = Op::of(t.registers[i.slot[1]]);
}

template <class Op>
void apply2(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] = Op::of(t.registers[i.slot[1]], t.registers[i.slot[2]]);
}

template <class Op>
void apply3(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] = Op::of(t.registers[i.slot[1]], t.registers[i.slot[2]], t.registers[i.slot[3]]);
}

template <class Op>
void apply4(Thread &t, const Instruction &i) {
    t.registers[i.slot[0]] =
        Op::of(t.registers[i.slot[1]], t.registers[i.slot[2]], t.registers[i.slot[3]], t.registers[i.slot[4]]);
}

}  // namespace fcm::ptx
