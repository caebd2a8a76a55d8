package org.fedcomuon.model;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Device;
import org.bytedeco.pytorch.DeviceOptional;
import org.bytedeco.pytorch.GraphOptimizerEnabledGuard;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.NamedTensor;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.named_buffer_iterator;
import org.bytedeco.pytorch.named_buffer_list;
import org.bytedeco.pytorch.named_parameter_iterator;
import org.bytedeco.pytorch.named_parameter_list;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.NativeLimits;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.jspecify.annotations.Nullable;

/**
 * A network from a TorchScript file, as {@code torch.jit.script(model).save("model.pt")} writes it: a model that was
 * written in Python is trained here without its source.
 *
 * <p>Parameters that require gradients become blocks, by their names in the model: those with two and more dimensions
 * are updated as matrices, others as vectors. Tied parameters, which are one tensor under several names, are one block
 * with the first of the names. Other parameters and buffers keep the values of the file, and {@link #initial} has those
 * of the blocks. The model is in evaluation mode: dropout does nothing, and batch normalisation uses the statistics of
 * the file.
 *
 * <p>A file is code and is run: load it only from where you would take a program from. A damaged file is refused; one
 * that is made to do harm is not recognised.
 *
 * <p>Thread-safe: each evaluation has a copy of the model for itself, whose parameters are those of the evaluation, not
 * copies of them. Copies are kept for the next evaluations.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class TorchScriptNetwork implements Network {
    static {
        NativeLimits.lift();
    }

    /** Batches of different sizes, because a traced model may have kept that of its example. */
    private static final List<Integer> TRIED = List.of(2, 2, 3);

    private final Path file;
    private final JitModule original;
    private final Point weights;
    private final List<Parameter> parameters;
    private final boolean words;
    private final Map<String, Queue<Copy>> idle = new ConcurrentHashMap<>(); // by device

    /**
     * A parameter of the model.
     *
     * @param block what it is a view of
     * @param path names of the module's parts that lead to it; the last is its own
     * @param scalar whether its shape is that of a scalar, and not that of the block
     */
    private record Parameter(String block, List<String> path, boolean scalar) {}

    /**
     * A copy of the model for one evaluation at a time.
     *
     * @param owners the parts that have the parameters, in their order
     */
    private record Copy(JitModule module, List<JitModule> owners) {}

    private TorchScriptNetwork(
            Path file, JitModule original, Point weights, List<Parameter> parameters, boolean words) {
        this.file = file;
        this.original = original;
        this.weights = weights;
        this.parameters = parameters;
        this.words = words;
    }

    /**
     * Loads a file, and evaluates the model once to see that it fits.
     *
     * @param input the shape of an example, without the dimension that counts examples
     * @param classes number of classes: the model's result is {@code batch x classes}
     * @throws MalformedFileException when it is not a TorchScript file, or its model cannot be trained on such examples
     */
    public static TorchScriptNetwork load(Path file, List<Integer> input, int classes) throws IOException {
        TorchScriptFile.require(file);
        Torch.claim();
        try (var _ = new PointerScope()) {
            TorchScriptNetwork network = open(file);
            return network.fitting(input, classes);
        }
    }

    private static TorchScriptNetwork open(Path file) throws IOException {
        JitModule module;
        try {
            module = kept(torch.load(file.toString(), new DeviceOptional(new Device("cpu")), true));
            module.eval();
        } catch (RuntimeException e) {
            throw new MalformedFileException(file, "libtorch cannot read it: " + Torch.message(e), e);
        }
        if (!module.find_method("forward").has_value()) {
            throw new MalformedFileException(file, "its model has no method 'forward'");
        }
        var blocks = new ArrayList<Block>();
        var values = new ArrayList<Tensor>();
        var parameters = new ArrayList<Parameter>();
        var tied = new HashMap<String, String>();
        named_parameter_list all = module.named_parameters();
        named_parameter_iterator end = all.end();
        for (named_parameter_iterator at = all.begin(); at.notEquals(end); at.increment()) {
            NamedTensor named = at.multiply();
            String name = named.name().getString();
            Tensor tensor = named.value();
            requireStored(file, name, tensor);
            requireFloats(file, name, tensor);
            if (!tensor.requires_grad()) {
                continue; // frozen, as a buffer is
            }
            long[] shape = LongStream.range(0, tensor.dim()).map(tensor::size).toArray();
            String block = tied.computeIfAbsent(
                    "%d: %s".formatted(tensor.data_ptr().address(), Torch.shape(tensor)), _ -> name);
            if (block.equals(name)) {
                blocks.add(block(file, name, shape));
                values.add(tensor.detach());
            }
            parameters.add(new Parameter(block, List.of(name.split("\\.")), shape.length == 0));
        }
        if (blocks.isEmpty()) {
            throw new MalformedFileException(
                    file,
                    all.size() == 0
                            ? "its model has no parameters; a frozen one (torch.jit.freeze) has none"
                            : "none of the %d parameters of its model requires a gradient".formatted(all.size()));
        }
        named_buffer_list buffers = module.named_buffers();
        named_buffer_iterator last = buffers.end();
        for (named_buffer_iterator at = buffers.begin(); at.notEquals(last); at.increment()) {
            NamedTensor named = at.multiply();
            requireStored(file, named.name().getString(), named.value());
        }
        var initial =
                new Point(Layout.of(blocks), Floats.zeros(Layout.of(blocks).length()));
        List<Tensor> into = Parameters.of(initial).blocks();
        for (int i = 0; i < values.size(); i++) {
            into.get(i).copy_(values.get(i).view_as(into.get(i)));
        }
        return new TorchScriptNetwork(file, module, initial, List.copyOf(parameters), false);
    }

    /** libtorch believes a file that says more elements of a tensor than it has. */
    private static void requireStored(Path file, String name, Tensor tensor) throws IOException {
        try {
            long last = tensor.storage_offset();
            for (int i = 0; i < tensor.dim(); i++) {
                if (tensor.size(i) < 0 || tensor.stride(i) < 0) {
                    throw new ArithmeticException();
                }
                last = Math.addExact(last, Math.multiplyExact(Math.max(0, tensor.size(i) - 1), tensor.stride(i)));
            }
            long bytes = Math.multiplyExact(Math.addExact(last, 1), tensor.itemsize());
            if (tensor.numel() == 0
                    || (tensor.storage_offset() >= 0
                            && bytes <= tensor.storage().nbytes())) {
                return;
            }
        } catch (ArithmeticException _) {
            // so large that it cannot be
        }
        throw new MalformedFileException(
                file,
                "is damaged: '%s' of the shape %s has more elements than are stored"
                        .formatted(name, Torch.shape(tensor)));
    }

    private static void requireFloats(Path file, String name, Tensor tensor) throws IOException {
        torch.ScalarType type = tensor.scalar_type().intern();
        if (type != torch.ScalarType.Float) {
            throw new MalformedFileException(
                    file, "parameter '%s' is of type %s; float32 is needed".formatted(name, type));
        }
    }

    private static Block block(Path file, String name, long... shape) throws IOException {
        try {
            List<Integer> sides = shape.length == 0
                    ? List.of(1)
                    : LongStream.of(shape).mapToObj(Math::toIntExact).toList();
            return new Block(name, sides, shape.length > 1 ? Block.Update.ORTHOGONAL : Block.Update.VECTOR);
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new MalformedFileException(file, "parameter '%s': %s".formatted(name, e.getMessage()), e);
        }
    }

    /** Returns this network, or one that takes numbers of words, once it has been evaluated. */
    private TorchScriptNetwork fitting(List<Integer> input, int classes) throws IOException {
        try {
            tryOut(input, classes);
            return this;
        } catch (MalformedFileException e) {
            var ofWords = new TorchScriptNetwork(file, original, weights, parameters, true);
            try {
                ofWords.tryOut(input, classes);
            } catch (MalformedFileException _) {
                throw e;
            }
            return ofWords;
        }
    }

    private void tryOut(List<Integer> input, int classes) throws IOException {
        Parameters w = Parameters.of(weights);
        @Nullable Tensor before = null;
        for (int batch : TRIED) {
            long[] shape = IntStream.concat(IntStream.of(batch), input.stream().mapToInt(side -> side))
                    .asLongStream()
                    .toArray();
            String what = "an input of %s %s".formatted(words ? "words" : "floats", Torch.shape(torch.empty(shape)));
            Tensor logits;
            try {
                logits = logits(w, torch.zeros(shape), Dropout.none());
            } catch (RuntimeException e) {
                throw new MalformedFileException(
                        file, "its model fails with %s: %s".formatted(what, Torch.message(e)), e);
            }
            if (logits.dim() != 2 || logits.size(0) != batch || logits.size(1) != classes) {
                throw new MalformedFileException(
                        file,
                        "its model has the result %s for %s; %d x %d is needed, a logit per class"
                                .formatted(Torch.shape(logits), what, batch, classes));
            }
            if (before != null && batch == TRIED.getFirst() && !torch.equal(logits, before)) {
                throw new MalformedFileException(
                        file, "its model has different results for the same input; it must not draw random numbers");
            }
            before = logits;
        }
    }

    @Override
    public String name() {
        return "torchscript";
    }

    @Override
    public Layout layout() {
        return weights.layout();
    }

    /** Returns the weights of the file, for any seed. */
    @Override
    public Floats initial(long seed) {
        Floats w = Floats.zeros(weights.values().length());
        w.segment().copyFrom(weights.values().segment());
        return w;
    }

    @Override
    public Tensor logits(Parameters w, Tensor input, Dropout dropout) {
        Queue<Copy> here = idle.computeIfAbsent(
                w.device().map(device -> device.str().getString()).orElse("cpu"), _ -> new ConcurrentLinkedQueue<>());
        Copy copy = here.poll();
        if (copy == null) {
            copy = copy(w);
        }
        try {
            return Torch.part(forward(copy, w, input));
        } finally {
            here.add(copy);
        }
    }

    private Supplier<Tensor> forward(Copy copy, Parameters w, Tensor input) {
        return () -> {
            for (int i = 0; i < parameters.size(); i++) {
                Parameter parameter = parameters.get(i);
                Tensor block = w.get(parameter.block());
                Tensor value = parameter.scalar() ? block.squeeze() : block;
                copy.owners().get(i).setattr(parameter.path().getLast(), new IValue(value));
            }
            Tensor examples = words ? input.to(torch.ScalarType.Long) : input;
            // The optimizer changes a graph after it has seen some inputs, and with it the bits of the results.
            try (var _ = new GraphOptimizerEnabledGuard(false)) {
                IValue result = copy.module().forward(new IValueVector(new IValue(examples)));
                if (!result.isTensor()) {
                    throw new IllegalStateException("%s: its model returns %s; a tensor is needed"
                            .formatted(file, result.tagKind().getString()));
                }
                return new Tensor(result.toTensor()); // that of the result goes with it
            } finally {
                // Adapted parameters lead to a graph, which would stay in memory.
                var nothing = new IValue(torch.empty(0));
                for (int i = 0; i < parameters.size(); i++) {
                    copy.owners().get(i).setattr(parameters.get(i).path().getLast(), nothing);
                }
            }
        };
    }

    private synchronized Copy copy(Parameters w) {
        JitModule module =
                kept(original.deepcopy(w.device().map(DeviceOptional::new).orElseGet(DeviceOptional::new)));
        var owners = new ArrayList<JitModule>();
        for (Parameter parameter : parameters) {
            JitModule owner = module;
            for (String part : parameter.path().subList(0, parameter.path().size() - 1)) {
                owner = kept(new JitModule(owner.attr(part).toObject()));
            }
            owners.add(owner);
        }
        return new Copy(module, List.copyOf(owners));
    }

    /** Keeps what was made within a scope for longer; the garbage collector frees it. */
    private static <T extends Pointer> T kept(T pointer) {
        pointer.retainReference();
        return pointer;
    }

    @Override
    public String toString() {
        return file.toString();
    }
}
