package org.fedcomuon.model;

import static java.util.stream.Collectors.joining;

import java.util.List;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Context;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.internal.NativeLimits;
import org.fedcomuon.internal.OpenBlasLibrary;
import org.slf4j.LoggerFactory;

/**
 * Limits libtorch to one thread per calling thread. The threads of OpenMP and OpenBLAS would compete with each other
 * and with the clients that run in parallel, and sums would depend on their number.
 *
 * <p>On GPUs it computes in single precision and the same in every run, which it does not by itself: convolutions would
 * be in TF32, by whatever algorithm cuDNN picks. A program that wants otherwise sets {@code torch.globalContext()}
 * after its first network, since this is set once.
 */
final class Torch {
    static {
        NativeLimits.lift();
        Context context = torch.globalContext();
        context.setAllowTF32CuDNN(false);
        context.setAllowTF32CuBLAS(false);
        context.setDeterministicCuDNN(true);
        context.setBenchmarkCuDNN(false);
        // An operation that has no deterministic algorithm is named in a warning of libtorch. As an error it would also
        // refuse every product, unless CUBLAS_WORKSPACE_CONFIG is set before the process starts.
        context.setDeterministicAlgorithms(true, true);
        context.setDeterministicFillUninitializedMemory(false); // for programs that read it, and costs time
    }

    /** That of this process. */
    static final GpuSupport GPUS = new GpuSupport(torch::cuda_is_available, LoggerFactory.getLogger(Torch.class)::warn);

    private static final ThreadLocal<Boolean> CLAIMED = ThreadLocal.withInitial(() -> {
        torch.set_num_threads(1); // for this thread only: it is a setting of OpenMP
        OpenBlasLibrary.setThreads(1);
        return true;
    });

    /** From here on a message of libtorch lists C++ frames. */
    private static final Pattern FRAMES = Pattern.compile("\\s*(Exception raised from |frame #\\d).*", Pattern.DOTALL);

    /** Where in its source libtorch has found a file wrong. */
    private static final Pattern PLACE = Pattern.compile("^\\[enforce fail at [^]]*\\] *\\. *");

    /** From here on a message of TorchScript says what happened, after its own trace. */
    private static final String SCRIPT_ERROR = "RuntimeError: ";

    private static final int LONGEST_MESSAGE = 300;

    private Torch() {}

    /** Returns whether libtorch can compute on this device; it cannot on simulated ones. */
    static boolean computesOn(String device) {
        return GPUS.computesOn(device);
    }

    /** Returns whether libtorch can compute on all of these devices, in their own memory. */
    static boolean computesOn(List<String> devices) {
        return devices.stream().allMatch(Torch::computesOn);
    }

    /** Must be called on a thread before any other call of libtorch. */
    static void claim() {
        if (!CLAIMED.get()) {
            throw new AssertionError();
        }
    }

    /** Returns the shape of a tensor, such as {@code 20 x 10}; that of a scalar is empty. */
    static String shape(Tensor x) {
        return LongStream.range(0, x.dim())
                .mapToObj(i -> Long.toString(x.size(i)))
                .collect(joining(" x "));
    }

    /** Returns what libtorch says about an error, in one line: its messages have traces of C++ and of TorchScript. */
    static String message(RuntimeException error) {
        String all = FRAMES.matcher(String.valueOf(error.getMessage())).replaceFirst("");
        int script = all.lastIndexOf(SCRIPT_ERROR);
        String said = script < 0 ? all : all.substring(script + SCRIPT_ERROR.length());
        String line = PLACE.matcher(said.strip()).replaceFirst("").replaceAll("\\s*\\R\\s*", "; ");
        return line.length() > LONGEST_MESSAGE ? line.substring(0, LONGEST_MESSAGE) + "..." : line;
    }

    /**
     * Runs a part of a network, such as a layer. Its temporary tensors are released at its end and stay in memory only
     * if the backward pass needs them; a scope around the whole network would hold all of them until the loss is known.
     */
    static Tensor part(Supplier<Tensor> body) {
        PointerScope outer = PointerScope.getInnerScope();
        try (var _ = new PointerScope()) {
            Tensor result = body.get();
            if (outer == null) {
                result.retainReference(); // and the garbage collector frees it
            } else {
                outer.attach(result);
            }
            return result;
        }
    }
}
