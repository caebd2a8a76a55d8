package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Recorded operators as work for a GPU: products and convolutions by their shapes, everything else by an operation an
 * element; bytes are inputs and outputs. Views and allocations are nothing.
 *
 * <p>An operator counts if it calls no other that does something; one that does is its calls, except where those are
 * only how the CPU goes about it.
 */
final class TorchWork {
    /** Counted as they are: what they call in turn is the CPU's way, and on a GPU a kernel or a library does it. */
    private static final Set<String> WHOLE = Set.of(
            "aten::convolution",
            "aten::convolution_backward",
            "aten::addmm",
            "aten::sum",
            "aten::native_layer_norm",
            "aten::native_layer_norm_backward",
            "aten::nll_loss_backward",
            "aten::max_pool2d_with_indices_backward",
            "aten::embedding_dense_backward");

    /** Nothing is computed or moved, though they do not look like views. */
    private static final Set<String> NOTHING =
            Set.of("aten::as_strided_", "aten::resize_", "aten::resize_as_", "aten::detach_");

    /**
     * Of those that are not one kernel on CUDA: a normalisation's inputs and its two parameters apart; a fill before
     * what is scattered; a fill, a sort of the indices with its passes, and the sums.
     */
    private static final Map<String, Integer> LAUNCHES = Map.of(
            "aten::native_layer_norm_backward",
            2,
            "aten::nll_loss_backward",
            2,
            "aten::max_pool2d_with_indices_backward",
            2,
            "aten::embedding_dense_backward",
            6);

    /** Of a tensor without sides: a number that is on its way into an operator. */
    private static final Set<String> SCALAR_COPIES = Set.of("aten::copy_", "aten::_to_copy", "aten::to");

    private static final String SCALAR_TO_HOST = "aten::_local_scalar_dense";

    private final List<KernelWork> work = new ArrayList<>();

    private TorchWork() {}

    /**
     * The work of a recording, in order. What the program makes for itself and the examples it picks are on the host,
     * and are copied.
     */
    static WorkList of(List<TorchOperation> recorded) {
        var all = new TorchWork();
        for (TorchOperation operation : recorded) {
            if (isFromHost(operation)) {
                all.work.add(KernelWork.fromHost("copy from the host", outputBytes(operation)));
            } else {
                all.add(operation);
            }
        }
        return new WorkList(all.work);
    }

    /** How many elements of dropout masks the program makes on the host: its only tensors of booleans. */
    static long maskElements(List<TorchOperation> recorded) {
        return recorded.stream()
                .filter(TorchWork::isFromHost)
                .flatMap(operation -> operation.outputs().stream())
                .filter(made -> made.elementBytes() == 1)
                .mapToLong(TorchOperation.Operand::elements)
                .sum();
    }

    /** A tensor without values that the program asks for is one that it fills itself. */
    private static boolean isFromHost(TorchOperation operation) {
        return operation.depth() == 0
                && (operation.name().equals("aten::empty") || operation.name().equals("aten::index_select"));
    }

    private void add(TorchOperation operation) {
        if (!WHOLE.contains(operation.name())) {
            int before = work.size();
            operation.calls().forEach(this::add);
            if (work.size() > before || isNothing(operation)) {
                return;
            }
        }
        work.add(cost(operation));
    }

    private static boolean isNothing(TorchOperation operation) {
        String name = operation.name();
        if (name.equals(SCALAR_TO_HOST)) {
            return false;
        }
        return operation.outputs().isEmpty()
                || NOTHING.contains(name)
                || name.startsWith("aten::empty")
                || name.startsWith("aten::new_empty")
                || isScalarCopy(operation)
                || (!name.endsWith("_") && isView(operation));
    }

    /** A number that is made a tensor of the right type: for a kernel on CUDA it is an argument. */
    private static boolean isScalarCopy(TorchOperation operation) {
        return SCALAR_COPIES.contains(operation.name())
                && operation.outputs().stream()
                        .allMatch(output -> output.shape().isEmpty());
    }

    private static boolean isView(TorchOperation operation) {
        return operation.outputs().stream()
                .allMatch(output -> operation.inputs().stream().anyMatch(input -> input.storage() == output.storage()));
    }

    /** Flops, bytes and launches of an operator by itself. */
    static KernelWork cost(TorchOperation operation) {
        List<TorchOperation.Operand> in = operation.inputs();
        List<TorchOperation.Operand> out = operation.outputs();
        double bytes = in.stream().mapToLong(TorchOperation.Operand::bytes).sum() + outputBytes(operation);
        return switch (operation.name()) {
            case "aten::mm", "aten::bmm" ->
                KernelWork.product(operation.name(), 1, product(in.get(0), out.get(0)), bytes);
            case "aten::addmm" -> KernelWork.product(operation.name(), 1, product(in.get(1), out.get(0)), bytes);
            case "aten::convolution" -> {
                boolean transposed = operation.flags().getFirst();
                long launches = in.size() > 2 ? 2 : 1; // the bias is added by itself
                double flops = convolution(in.get(1), transposed ? in.get(0) : out.get(0));
                yield KernelWork.product(operation.name(), launches, flops, bytes);
            }
            case "aten::convolution_backward" -> {
                // Of input, weight and bias those that are asked for; the first two are as much work as going forward.
                List<Boolean> wanted = operation.flags().subList(1, 4);
                boolean transposed = operation.flags().getFirst();
                double one = convolution(in.get(2), transposed ? in.get(1) : in.get(0));
                long launches = wanted.stream().filter(asked -> asked).count();
                long products =
                        wanted.subList(0, 2).stream().filter(asked -> asked).count();
                double bias = wanted.get(2) ? in.get(0).elements() : 0;
                double again = (launches - 1) * (double) in.get(0).bytes(); // each reads what comes from above
                yield KernelWork.product(operation.name(), launches, products * one + bias, bytes + again);
            }
            case SCALAR_TO_HOST -> KernelWork.tiny(operation.name(), 1);
            default ->
                KernelWork.of(
                        operation.name(),
                        LAUNCHES.getOrDefault(operation.name(), 1),
                        (double) Math.max(most(in), most(out)),
                        bytes);
        };
    }

    private static double outputBytes(TorchOperation operation) {
        return operation.outputs().stream()
                .mapToLong(TorchOperation.Operand::bytes)
                .sum();
    }

    private static long most(List<TorchOperation.Operand> operands) {
        return operands.stream()
                .mapToLong(operand -> operand.shape().stream().reduce(1L, (x, y) -> x * y))
                .max()
                .orElse(0);
    }

    private static double product(TorchOperation.Operand left, TorchOperation.Operand result) {
        return 2.0 * left.side(-1) * most(List.of(result));
    }

    /**
     * Each element of {@code where} meets each weight of its channel: the result's, of a transposed one the input's.
     */
    private static double convolution(TorchOperation.Operand weight, TorchOperation.Operand where) {
        return 2.0 * most(List.of(where)) * most(List.of(weight)) / weight.side(0);
    }
}
