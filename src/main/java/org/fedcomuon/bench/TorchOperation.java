package org.fedcomuon.bench;

import java.util.List;

/**
 * A call of a libtorch operator, as it happened.
 *
 * @param name such as {@code aten::addmm}
 * @param depth 0 for what the program called, more for what an operator called in its turn
 * @param inputs its tensors, those of lists too
 * @param outputs what it gave
 * @param flags its booleans, those of lists too: whether a convolution is a transposed one, which gradients are wanted
 * @param calls those that it made in its turn, one level down
 */
record TorchOperation(
        String name,
        int depth,
        List<Operand> inputs,
        List<Operand> outputs,
        List<Boolean> flags,
        List<TorchOperation> calls) {
    /**
     * A tensor.
     *
     * @param storage where its memory begins; views of one tensor have it in common
     * @param shape its sides
     * @param elements that are in memory: an expanded side counts once
     * @param elementBytes of one
     */
    record Operand(long storage, List<Long> shape, long elements, long elementBytes) {
        long bytes() {
            return elements * elementBytes;
        }

        long side(int i) {
            return shape.get(i < 0 ? shape.size() + i : i);
        }
    }

    TorchOperation {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
        flags = List.copyOf(flags);
        calls = List.copyOf(calls);
    }
}
