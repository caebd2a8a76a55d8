package org.fedcomuon.bench;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.BooleanList;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueArrayRef;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.RecordFunction;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.internal.TorchCallback;

/**
 * Records the libtorch operators that a piece of work calls on this thread, with the shapes of their tensors; the
 * backward pass of CPU tensors runs on the calling thread too.
 */
final class TorchRecorder {
    /** An operator that has not ended. */
    private record Open(
            String name, List<TorchOperation.Operand> inputs, List<Boolean> flags, List<TorchOperation> calls) {}

    /** An address that JavaCPP did not allocate and will not free. */
    private static final class Address extends Pointer {
        Address(long address) {
            this.address = address;
        }
    }

    /**
     * A view of the object that libtorch passes to a callback. All constructors of the bindings would create a new one.
     */
    private static final class Seen extends RecordFunction {
        Seen(long address) {
            super(0L); // an empty array
            this.address = address;
        }
    }

    interface Work {
        void run() throws Exception;
    }

    private final Deque<Open> open = new ArrayDeque<>();
    private final List<TorchOperation> roots = new ArrayList<>();
    private Optional<Throwable> failure = Optional.empty();

    private TorchRecorder() {}

    /**
     * Returns the operators that {@code work} called, in the order in which the calls ended, each with its own calls.
     */
    static List<TorchOperation> record(Work work) throws Exception {
        var recorder = new TorchRecorder();
        try (var callback = new TorchCallback(recorder::begin, recorder::end)) {
            long handle = torch.addThreadLocalCallback(new Address(callback.address()));
            try {
                work.run();
            } finally {
                torch.removeCallback(handle);
            }
        }
        if (recorder.failure.isPresent()) {
            throw new IllegalStateException("an operator could not be recorded", recorder.failure.get());
        }
        return List.copyOf(recorder.roots);
    }

    private void begin(long address) {
        guarded(() -> {
            var function = new Seen(address);
            var inputs = new ArrayList<TorchOperation.Operand>();
            var flags = new ArrayList<Boolean>();
            IValueArrayRef values = function.inputs();
            for (long i = 0; i < function.num_inputs(); i++) {
                read(values.at(i), inputs, flags);
            }
            open.push(new Open(function.name().getString(), inputs, flags, new ArrayList<>()));
        });
    }

    private void end(long address) {
        guarded(() -> {
            var function = new Seen(address);
            var outputs = new ArrayList<TorchOperation.Operand>();
            IValueVector values = function.outputs();
            for (long i = 0; i < values.size(); i++) {
                read(values.get(i), outputs, new ArrayList<>());
            }
            Open begun = open.pop();
            var done = new TorchOperation(
                    begun.name(), open.size(), begun.inputs(), outputs, begun.flags(), begun.calls());
            (open.isEmpty() ? roots : open.peek().calls()).add(done);
        });
    }

    /** Runs a step of a callback. Nothing may be thrown into libtorch; the first failure is reported afterwards. */
    private void guarded(Runnable step) {
        if (failure.isPresent()) {
            return;
        }
        try (var _ = new PointerScope()) {
            step.run();
        } catch (RuntimeException | Error e) {
            failure = Optional.of(e);
        }
    }

    private static void read(IValue value, List<TorchOperation.Operand> tensors, List<Boolean> flags) {
        if (value.isTensor()) {
            add(value.toTensor(), tensors);
        } else if (value.isTensorList()) {
            TensorVector list = value.toTensorVector();
            for (long i = 0; i < list.size(); i++) {
                add(list.get(i), tensors);
            }
        } else if (value.isBool()) {
            flags.add(value.toBool());
        } else if (value.isBoolList()) {
            BooleanList list = value.toBoolList();
            for (long i = 0; i < list.size(); i++) {
                flags.add(list.get(i));
            }
        }
    }

    private static void add(Tensor tensor, List<TorchOperation.Operand> tensors) {
        if (!tensor.defined() || !tensor.has_storage()) {
            return;
        }
        var shape = new ArrayList<Long>();
        long elements = 1;
        for (long i = 0; i < tensor.dim(); i++) {
            shape.add(tensor.size(i));
            elements *= tensor.stride(i) == 0 ? Math.min(1, tensor.size(i)) : tensor.size(i);
        }
        Pointer memory = tensor.storage().data();
        long storage = memory == null ? 0 : memory.address(); // an empty tensor has none
        tensors.add(new TorchOperation.Operand(storage, List.copyOf(shape), elements, tensor.element_size()));
    }
}
