package org.fedcomuon.bench;

import java.util.List;

/**
 * A recorded call of a libtorch operator.
 *
 * @param name such as {@code aten::addmm}
 * @param depth 0 for a call by the program, more for a call by another operator
 * @param inputs its tensors, including those in lists
 * @param outputs its results
 * @param flags its booleans, including those in lists: whether a convolution is transposed, which gradients are wanted
 * @param calls the calls that it made itself, one level down
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
     * @param storage the address of its memory, which views of one tensor share
     * @param shape its dimensions
     * @param elements elements in memory: an expanded dimension counts once
     * @param elementBytes bytes per element
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
