package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Recorded operators as work for a GPU: products and convolutions by their shapes, everything else with one operation
 * per element; bytes are those of inputs and outputs. Views and allocations do not count.
 *
 * <p>An operator counts if it calls no other operator that counts; otherwise its calls count instead, except where they
 * are specific to the CPU.
 */
final class TorchWork {
    /**
     * Operators that count themselves: their calls are specific to the CPU, and on a GPU a kernel or a library does the
     * work.
     */
    private static final Set<String> WHOLE = Set.of(
            "aten::convolution",
            "aten::convolution_backward",
            "aten::addmm",
            "aten::bmm",
            "aten::baddbmm",
            "aten::sum",
            "aten::native_layer_norm",
            "aten::native_layer_norm_backward",
            "aten::nll_loss_backward",
            "aten::max_pool2d_with_indices_backward",
            "aten::embedding_dense_backward");

    /** Operators that compute and move nothing, although they are not recognized as views. */
    private static final Set<String> NOTHING =
            Set.of("aten::as_strided_", "aten::resize_", "aten::resize_as_", "aten::detach_");

    /**
     * The number of launches of operators that are not one kernel on CUDA: separate kernels for the input and the two
     * parameters of a normalisation; a fill before a scatter; a fill, the passes of a sort of the indices, and the
     * sums.
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

    /** Copies of a tensor without dimensions, which is a scalar argument of an operator. */
    private static final Set<String> SCALAR_COPIES = Set.of("aten::copy_", "aten::_to_copy", "aten::to");

    /** The name of the work of bringing a value to the host, which waits for it. */
    static final String VALUE_TO_HOST = "aten::_local_scalar_dense";

    /** The name of the work of bringing a dropout mask from the host. */
    static final String MASK = "dropout mask from the host";

    private final List<KernelWork> work = new ArrayList<>();

    private TorchWork() {}

    /**
     * Returns the work of a recording, in order. Tensors that the program creates and the examples that it selects are
     * on the host and are copied.
     */
    static WorkList of(List<TorchOperation> recorded) {
        var all = new TorchWork();
        for (TorchOperation operation : recorded) {
            if (isFromHost(operation)) {
                all.work.add(fromHost(operation));
            } else {
                all.add(operation);
            }
        }
        return new WorkList(all.work);
    }

    /**
     * Returns the number of elements of dropout masks, the only tensors of booleans that the program makes on the host.
     */
    static long maskElements(List<TorchOperation> recorded) {
        return recorded.stream()
                .filter(TorchWork::isFromHost)
                .flatMap(operation -> operation.outputs().stream())
                .filter(made -> made.elementBytes() == 1)
                .mapToLong(TorchOperation.Operand::elements)
                .sum();
    }

    /**
     * Returns the copy of a tensor that is made on the host. The host waits for it (PyTorch's
     * aten/src/ATen/native/cuda/Copy.cu: a copy that is not non_blocking ends with a synchronization), except where it
     * is the indices of the examples, which are selected on the host.
     */
    private static KernelWork fromHost(TorchOperation operation) {
        boolean selected = operation.name().equals("aten::index_select");
        boolean mask = operation.outputs().stream().allMatch(made -> made.elementBytes() == 1);
        return KernelWork.fromHost(mask ? MASK : "copy from the host", outputBytes(operation))
                .waiting(selected || mask ? 1 : 0);
    }

    /** Returns whether an operation makes a tensor on the host. The program fills uninitialized tensors itself. */
    private static boolean isFromHost(TorchOperation operation) {
        return operation.depth() == 0
                && (operation.name().equals("aten::empty") || operation.name().equals("aten::index_select"));
    }

    private void add(TorchOperation operation) {
        if (!WHOLE.contains(operation.name())) {
            int before = work.size();
            operation.calls().forEach(this::add);
            if (work.size() > before || isFree(operation)) {
                return;
            }
        }
        work.add(cost(operation));
    }

    private static boolean isFree(TorchOperation operation) {
        String name = operation.name();
        if (name.equals(VALUE_TO_HOST)) {
            return false;
        }
        return operation.outputs().isEmpty()
                || NOTHING.contains(name)
                || name.startsWith("aten::empty")
                || name.startsWith("aten::new_empty")
                || isScalarCopy(operation)
                || (!name.endsWith("_") && isView(operation));
    }

    /**
     * Returns whether an operation converts a scalar to a tensor of the right type, which is an argument of a kernel on
     * CUDA.
     */
    private static boolean isScalarCopy(TorchOperation operation) {
        return SCALAR_COPIES.contains(operation.name())
                && operation.outputs().stream()
                        .allMatch(output -> output.shape().isEmpty());
    }

    private static boolean isView(TorchOperation operation) {
        return operation.outputs().stream()
                .allMatch(output -> operation.inputs().stream().anyMatch(input -> input.storage() == output.storage()));
    }

    /** Returns the flops, bytes and launches of an operator by itself. */
    static KernelWork cost(TorchOperation operation) {
        List<TorchOperation.Operand> in = operation.inputs();
        List<TorchOperation.Operand> out = operation.outputs();
        double bytes = in.stream().mapToLong(TorchOperation.Operand::bytes).sum() + outputBytes(operation);
        return switch (operation.name()) {
            case "aten::mm", "aten::bmm" ->
                KernelWork.product(operation.name(), 1, product(in.get(0), out.get(0)), bytes);
            case "aten::addmm", "aten::baddbmm" ->
                KernelWork.product(operation.name(), 1, product(in.get(1), out.get(0)), bytes);
            case "aten::convolution" -> {
                boolean transposed = operation.flags().getFirst();
                long launches = in.size() > 2 ? 2 : 1; // the bias is added separately
                double flops = convolution(in.get(1), transposed ? in.get(0) : out.get(0));
                yield KernelWork.product(operation.name(), launches, flops, bytes);
            }
            case "aten::convolution_backward" -> {
                // The requested gradients of input, weight and bias; each of the first two is as much work as the
                // forward pass.
                List<Boolean> wanted = operation.flags().subList(1, 4);
                boolean transposed = operation.flags().getFirst();
                double one = convolution(in.get(2), transposed ? in.get(1) : in.get(0));
                long launches = wanted.stream().filter(asked -> asked).count();
                long products =
                        wanted.subList(0, 2).stream().filter(asked -> asked).count();
                double bias = wanted.get(2) ? in.get(0).elements() : 0;
                double again = (launches - 1) * (double) in.get(0).bytes(); // each reads the incoming gradient
                yield KernelWork.product(operation.name(), launches, products * one + bias, bytes + again);
            }
            case VALUE_TO_HOST -> KernelWork.tiny(operation.name(), 1).waiting(1);
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
     * Returns the flops of a convolution. Each element of {@code where}, the result or, if transposed, the input, is
     * combined with each weight of its channel.
     */
    private static double convolution(TorchOperation.Operand weight, TorchOperation.Operand where) {
        return 2.0 * most(List.of(where)) * most(List.of(weight)) / weight.side(0);
    }
}
