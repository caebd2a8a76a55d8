package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Precision;
import org.fedcomuon.format.Npy;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.Quality;
import org.fedcomuon.linalg.ScaleRule;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon orthogonalize}: computes the orthogonal factors of the matrices in an NPY file. */
@Command(
        name = "orthogonalize",
        description = "Write the orthogonal factor of every matrix in an NPY file.",
        footer = {"", "2-D, or 3-D for a batch; float32 or float64; the result has the same shape, in C order."})
final class OrthogonalizeCommand implements Runnable {
    enum Method {
        AUTO,
        EXACT,
        EXACT_SVD,
        NEWTON_SCHULZ,
        GRAM;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfDouble DOUBLE =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Spec
    private CommandSpec spec;

    @Parameters(index = "0", paramLabel = "IN.npy", description = "The file to read.")
    private Path in = Path.of("");

    @Parameters(index = "1", paramLabel = "OUT.npy", description = "The file to write.")
    private Path out = Path.of("");

    @Option(
            names = "--method",
            defaultValue = "auto",
            description = "One of ${COMPLETION-CANDIDATES}; auto picks newton-schulz or gram by shape.")
    private Method method = Method.AUTO;

    @Option(
            names = "--coefficients",
            paramLabel = "NAME",
            description = "One of " + Coefficients.FORMS + "; jordan by default.")
    private Optional<String> coefficients = Optional.empty();

    @Option(
            names = "--steps",
            paramLabel = "N",
            description = "The number of steps; by default that of the coefficients, mostly 5.")
    private Optional<Integer> steps = Optional.empty();

    @Option(
            names = "--until",
            paramLabel = "E",
            description = {
                "Instead of coefficients: as many steps as bring every singular value within E of 1,",
                "by polar-express-until. With float32 rounding leaves about 1e-6."
            })
    private Optional<Double> until = Optional.empty();

    @Option(
            names = "--lower-bound",
            paramLabel = "L",
            description = {
                "With --until: the smallest singular value to bring there, relative to the Frobenius norm of",
                "the matrix; 1e-4 by default. To an error of 1e-6 it takes 9 steps, from 1e-6 12."
            })
    private Optional<Double> lowerBound = Optional.empty();

    @Option(
            names = "--precision",
            paramLabel = "P",
            defaultValue = "fp32",
            description = "How float32 matrices are multiplied: fp32 (default), tf32 or bf16.")
    private String precision = "fp32";

    @Option(
            names = "--products",
            paramLabel = "BY",
            defaultValue = "kernels",
            description = "What multiplies large matrices on a GPU: kernels (default) or cublas.")
    private String products = "kernels";

    @Option(names = "--device", defaultValue = "cpu:0", description = "The device to compute on; cpu:0 by default.")
    private String deviceName = "cpu:0";

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    /** The content of the file: {@code count} matrices. */
    private record Stack(int count, int rows, int cols, ElementType type) {
        int size() {
            return rows * cols;
        }
    }

    @Override
    public void run() {
        Orthogonalizer how = orthogonalizer();
        try (Arena arena = Arena.ofConfined();
                Device device = Devices.open(deviceName)) {
            Npy.Array input = read(arena);
            Stack stack = stack(input);
            try (Buffer m = device.allocate("M", stack.type(), (long) stack.count() * stack.size());
                    Buffer o = device.allocate("O", stack.type(), m.length());
                    Orthogonalizer.Plan plan = plan(how, device, stack)) {
                double[][] matrices = new double[stack.count()][];
                for (int k = 0; k < stack.count(); k++) {
                    matrices[k] = matrix(input, stack, k);
                    put(m, stack, k, matrices[k]);
                }
                orthogonalize(plan, stack, m, o); // the first call loads and links; the second is timed
                long start = System.nanoTime();
                orthogonalize(plan, stack, m, o);
                double seconds = (System.nanoTime() - start) * 1e-9;
                write(arena, input, stack, o);
                report(device, how, plan, stack, seconds, matrices, o);
            }
        }
    }

    private Orthogonalizer orthogonalizer() {
        try {
            Coefficients set = coefficients();
            Precision wanted = Precision.parse(precision);
            var by = Orthogonalizer.Products.parse(products);
            if ((method == Method.EXACT || method == Method.EXACT_SVD) && wanted != Precision.FP32) {
                throw new UsageException("--precision %s: %s is always fp32".formatted(wanted, method));
            }
            return switch (method) {
                case AUTO -> new Auto(set, wanted, by);
                case EXACT -> new Exact();
                case EXACT_SVD -> new ExactSvd();
                case NEWTON_SCHULZ -> new NewtonSchulz(set, wanted, by);
                case GRAM -> new GramNewtonSchulz(set, wanted, by);
            };
        } catch (IllegalArgumentException e) {
            throw new UsageException(e.getMessage(), e);
        }
    }

    private Coefficients coefficients() {
        if (until.isEmpty()) {
            if (lowerBound.isPresent()) {
                throw new UsageException("--lower-bound is of --until, which is not given");
            }
            return Coefficients.parse(coefficients.orElse("jordan"), steps);
        }
        if (coefficients.isPresent() || steps.isPresent()) {
            throw new UsageException(
                    "--until has coefficients and steps of its own: leave out --coefficients and --steps");
        }
        if (method == Method.EXACT || method == Method.EXACT_SVD) {
            throw new UsageException("--until: %s takes no steps".formatted(method));
        }
        return Coefficients.polarExpressUntil(until.get(), lowerBound.orElse(Coefficients.LOWER_BOUND));
    }

    private Npy.Array read(Arena arena) {
        try {
            return Npy.read(in, arena);
        } catch (IOException e) {
            throw new UsageException(e.getMessage(), e);
        }
    }

    private Stack stack(Npy.Array array) {
        List<Long> shape = array.shape();
        if (shape.size() != 2 && shape.size() != 3) {
            throw new UsageException(
                    "%s has %d dimensions; 2, or 3 for a batch, are needed".formatted(in, shape.size()));
        }
        long count = shape.size() == 3 ? shape.getFirst() : 1;
        long rows = shape.get(shape.size() - 2);
        long cols = shape.getLast();
        if (count < 1 || rows < 1 || cols < 1) {
            throw new UsageException("%s is empty: its shape is %s".formatted(in, shape));
        }
        if (count > Integer.MAX_VALUE || rows > 1 << 20 || cols > 1 << 20 || rows * cols > 1 << 30) {
            throw new UsageException("%s: a matrix of shape %s is too large".formatted(in, shape));
        }
        return new Stack((int) count, (int) rows, (int) cols, array.type());
    }

    private static Orthogonalizer.Plan plan(Orthogonalizer how, Device device, Stack stack) {
        try {
            return how.plan(device, stack.count(), stack.rows(), stack.cols(), stack.type(), ScaleRule.NONE);
        } catch (IllegalArgumentException | DeviceException.Unsupported e) {
            throw new UsageException("%s: %s".formatted(how.name(), e.getMessage()), e);
        }
    }

    private void orthogonalize(Orthogonalizer.Plan plan, Stack stack, Buffer m, Buffer o) {
        try {
            plan.orthogonalize(m.batch(stack.count(), stack.size()), o.batch(stack.count(), stack.size()));
            m.device().synchronize();
        } catch (DeviceException.NotFinite e) {
            throw new UsageException(
                    "%s: matrix %d is not finite at element %d, or the coefficients drive it there"
                            .formatted(in, e.position().client(), e.position().index()),
                    e);
        }
    }

    /** Returns matrix k in C order, for any order of the file. */
    private static double[] matrix(Npy.Array array, Stack stack, int k) {
        long count = stack.count();
        var values = new double[stack.size()];
        for (int i = 0; i < stack.rows(); i++) {
            for (int j = 0; j < stack.cols(); j++) {
                int at = i * stack.cols() + j;
                long index =
                        array.fortranOrder() ? k + count * (i + (long) stack.rows() * j) : (long) k * stack.size() + at;
                values[at] = stack.type() == ElementType.FLOAT32
                        ? array.data().get(FLOAT, index * Float.BYTES)
                        : array.data().get(DOUBLE, index * Double.BYTES);
            }
        }
        return values;
    }

    private static void put(Buffer m, Stack stack, int k, double[] values) {
        long at = (long) k * stack.size();
        if (stack.type() == ElementType.FLOAT64) {
            m.copyIn(at, values);
            return;
        }
        var floats = new float[values.length];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = (float) values[i];
        }
        m.copyIn(at, floats);
    }

    private static double[] get(Buffer o, Stack stack, int k) {
        return o.toDoubles((long) k * stack.size(), stack.size());
    }

    private void write(Arena arena, Npy.Array input, Stack stack, Buffer o) {
        MemorySegment data = arena.allocate(Math.max(1, input.data().byteSize()), Double.BYTES);
        long at = 0;
        for (int k = 0; k < stack.count(); k++) {
            for (double value : get(o, stack, k)) {
                if (stack.type() == ElementType.FLOAT32) {
                    data.set(FLOAT, at, (float) value);
                } else {
                    data.set(DOUBLE, at, value);
                }
                at += stack.type().bytes();
            }
        }
        try {
            Npy.write(out, new Npy.Array(input.type(), input.shape(), false, data));
        } catch (IOException e) {
            throw new UsageException("%s cannot be written: %s".formatted(out, e.getMessage()), e);
        }
    }

    private void report(
            Device device,
            Orthogonalizer how,
            Orthogonalizer.Plan plan,
            Stack stack,
            double seconds,
            double[][] matrices,
            Buffer o) {
        double error = 0;
        double alignment = Double.MAX_VALUE;
        double smallest = Double.MAX_VALUE;
        double largest = 0;
        try (Device judge = Devices.open("cpu:0")) {
            for (int k = 0; k < stack.count(); k++) { // the worst value of each measure
                Quality quality = Quality.of(judge, stack.rows(), stack.cols(), matrices[k], get(o, stack, k));
                error = Math.max(error, quality.orthogonalityError());
                alignment = Math.min(alignment, quality.alignment());
                smallest = Math.min(smallest, quality.smallestSingularValue());
                largest = Math.max(largest, quality.largestSingularValue());
            }
        }
        PrintWriter print = spec.commandLine().getOut();
        if (json) {
            var all = new LinkedHashMap<String, Object>();
            all.put("method", how.name());
            all.put("path", plan.path());
            all.put("device", device.name());
            all.put("matrices", stack.count());
            all.put("rows", stack.rows());
            all.put("cols", stack.cols());
            all.put("type", stack.type().name().toLowerCase(Locale.ROOT));
            all.put("seconds", seconds);
            all.put("orthogonality_error", error);
            all.put("alignment", alignment);
            all.put("smallest_singular_value", smallest);
            all.put("largest_singular_value", largest);
            until.ifPresent(wanted -> all.put("until", wanted));
            if (!plan.kept().isEmpty()) {
                all.put("directions", Math.min(stack.rows(), stack.cols()));
                all.put("directions_kept", plan.kept());
            }
            print.println(Json.pretty(all));
        } else {
            print.printf(
                    "%s (%s) on %s: %d x %d x %d %s%n",
                    how.name(),
                    plan.path(),
                    device.name(),
                    stack.count(),
                    stack.rows(),
                    stack.cols(),
                    stack.type().name().toLowerCase(Locale.ROOT));
            print.printf(
                    "time %.3f ms, orthogonality error %.3g, alignment %.6f, singular values %.4f to %.4f%n",
                    seconds * 1e3, error, alignment, smallest, largest);
            double off = Math.max(1 - smallest, largest - 1);
            if (until.isPresent() && off > until.get()) {
                print.printf(
                        "the wanted error of %s is not reached, a singular value is %.2g off 1: what is below the lower"
                                + " bound stays below 1, and float32 leaves about 1e-6%n",
                        until.get(), off);
            }
            if (!plan.kept().isEmpty()) {
                print.printf(
                        "directions kept %d to %d of %d%n",
                        Collections.min(plan.kept()),
                        Collections.max(plan.kept()),
                        Math.min(stack.rows(), stack.cols()));
            }
        }
        print.flush();
    }
}
