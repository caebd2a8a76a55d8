package org.fedcomuon.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.internal.OpenBlasLibrary;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;

/**
 * Compares the weight step {@code W -= eta O} of a Muon method with usual implementations, in one process and in turns:
 * libtorch, one matrix at a time, with every setting of its threads, and for small matrices loops over OpenBLAS calls.
 * Every peer must compute our weights before anything is timed. The limit of the machine is a large product of OpenBLAS
 * in the same run; only the multiplications that remain when symmetry is used are counted.
 */
public final class OrthogonalizeBench {
    /** The number of samples per contender in a full benchmark. */
    public static final int ROUNDS = 7;

    private static final int CLIENTS = 10;
    private static final String LENETS = "LeNet x 10 clients";
    private static final double ETA = 0.01;
    private static final int PEAK_SIDE = 1536;
    private static final int[][] LENET = {{6, 25}, {16, 150}, {120, 256}, {10, 120}};
    private static final Coefficients JORDAN = Coefficients.jordan(5);

    private final Device device;
    private final int rounds;
    private final TurnListener listener;

    private OrthogonalizeBench(Device device, int rounds, TurnListener listener) {
        this.device = device;
        this.rounds = rounds;
        this.listener = listener;
    }

    /**
     * Measures LeNet with ten clients, and each of {@code shapes} by itself with Newton-Schulz and, where square,
     * exactly; {@code rounds} samples of each contender.
     */
    public static BenchReport run(Device device, int rounds, List<int[]> shapes, TurnListener listener) {
        var bench = new OrthogonalizeBench(device, rounds, listener);
        var rows = new ArrayList<>(bench.lenet());
        for (int[] shape : shapes) {
            rows.addAll(bench.single(new Auto(JORDAN), shape[0], shape[1]));
        }
        shapes.stream()
                .filter(shape -> shape[0] == shape[1])
                .forEach(shape -> rows.addAll(bench.single(new ExactSvd(), shape[0], shape[1])));
        return new BenchReport(
                "orthogonalize",
                device.toString(),
                "weight steps W -= eta O with five jordan steps, or exact; ratio = a peer's time relative to ours "
                        + "(> 1: ours is faster); for sgemm, the fraction of its speed that we reach, counting the"
                        + " multiplications that symmetry leaves",
                rows);
    }

    /** Returns the shapes of the default run. */
    public static List<int[]> shapes() {
        return List.of(new int[] {768, 768}, new int[] {768, 1024}, new int[] {1024, 4096});
    }

    private List<BenchReport.Row> lenet() {
        var blocks = new ArrayList<NewtonSchulzSpec.Block>();
        long size = 0;
        for (int[] shape : LENET) {
            blocks.add(NewtonSchulzSpec.Block.at(size, shape[0], shape[1]));
            size += (long) shape[0] * shape[1];
        }
        long perClient = size;
        var what = new NewtonSchulzSpec(blocks, JORDAN.steps(), JORDAN.divisor());
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, CLIENTS * perClient);
                Buffer ours = device.allocate("W", ElementType.FLOAT32, CLIENTS * perClient);
                Buffer theirs = device.allocate("W of the loop", ElementType.FLOAT32, CLIENTS * perClient);
                var loop = new OpenBlasLoop(device, blocks, JORDAN.steps(), ETA);
                var torch = new TorchMatrices(JORDAN.steps(), ETA)) {
            fillNormal(m);
            Runnable our = () ->
                    device.newtonSchulzStep(what, m.batch(CLIENTS, perClient), ETA, ours.batch(CLIENTS, perClient));
            our.run();
            for (boolean symmetric : new boolean[] {true, false}) {
                theirs.zero();
                loop.step(symmetric, CLIENTS, m, theirs, perClient);
                requireSame(ours, theirs.toFloats(0, (int) theirs.length()), 0);
            }
            for (int client = 0; client < CLIENTS; client++) {
                for (NewtonSchulzSpec.Block block : blocks) {
                    torch.add(m, client * perClient + block.momentumOffset(), (int) block.rows(), (int) block.cols());
                }
            }
            torch.stepAll(false);
            long at = 0;
            for (float[] weights : torch.weights()) {
                requireSame(ours, weights, at);
                at += weights.length;
            }

            var contest = new Interleaved(LENETS, listener)
                    .add("fedcomuon, one call", OrthogonalizeBench::useOneBlasThread, our);
            for (int threads : device.threads() > 1 ? new int[] {1, device.threads()} : new int[] {1}) {
                for (boolean symmetric : new boolean[] {true, false}) {
                    String name =
                            "OpenBLAS loop, %s, %d threads".formatted(symmetric ? "syrk + symm" : "gemm", threads);
                    contest.add(
                            name,
                            () -> OpenBlasLibrary.setThreads(threads),
                            () -> loop.step(symmetric, CLIENTS, m, theirs, perClient));
                }
            }
            addTorch(contest, "fp32", () -> torch.stepAll(false));
            contest.add(
                    "libtorch bf16, 1 + 1 threads",
                    () -> TorchPeer.use(new TorchPeer.Threads(1, 1)),
                    () -> torch.stepAll(true));
            double multiplications = 0;
            for (int[] shape : LENET) {
                multiplications += CLIENTS * schulzFlops(shape[0], shape[1]);
            }
            return measure(LENETS, contest, multiplications);
        }
    }

    private List<BenchReport.Row> single(Orthogonalizer how, int rows, int cols) {
        long size = (long) rows * cols;
        boolean exact = how instanceof ExactSvd;
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, size);
                Buffer w = device.allocate("W", ElementType.FLOAT32, size);
                Orthogonalizer.Plan plan = how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE);
                var torch = new TorchMatrices(JORDAN.steps(), ETA)) {
            fillNormal(m);
            torch.add(m, 0, rows, cols);
            Runnable our = () -> plan.step(m.batch(1, size), ETA, w.batch(1, size));
            Runnable their = exact ? torch::exactStepAll : () -> torch.stepAll(false);
            our.run();
            their.run();
            requireSame(w, torch.weights().getFirst(), 0);
            String what = "%d x %d%s".formatted(rows, cols, exact ? ", exact" : "");
            var contest = new Interleaved(what, listener)
                    .add("fedcomuon, " + plan.path(), OrthogonalizeBench::useOneBlasThread, our);
            addTorch(contest, exact ? "linalg_svd" : "fp32", their);
            return measure(what, contest, exact ? 0 : schulzFlops(rows, cols));
        }
    }

    /** Returns the flops that symmetric products need, in the form that runs: the Gram form needs fewer. */
    private static double schulzFlops(int rows, int cols) {
        double side = Math.min(rows, cols);
        double length = Math.max(rows, cols);
        boolean gram = new Auto(JORDAN).pick(rows, cols, ElementType.FLOAT32) instanceof GramNewtonSchulz;
        double cube = side * side * side;
        // Gram, runs of 2 and 3 steps: X X^T and Q X twice each, and 5 + 9 products of squares
        return gram ? 2 * 3 * side * side * length + 14 * cube : 5 * (3 * side * side * length + cube);
    }

    /** Adds libtorch with every setting of its threads, because the best setting depends on the shape. */
    private void addTorch(Interleaved contest, String what, Runnable work) {
        for (TorchPeer.Threads threads : TorchPeer.settings(device.threads())) {
            contest.add("libtorch %s, %s".formatted(what, threads), () -> TorchPeer.use(threads), work);
        }
    }

    private List<BenchReport.Row> measure(String what, Interleaved contest, double flops) {
        String peak = "OpenBLAS sgemm of %d, %d threads".formatted(PEAK_SIDE, device.threads());
        long side = (long) PEAK_SIDE * PEAK_SIDE;
        try (Buffer a = device.allocate("A", ElementType.FLOAT32, side);
                Buffer c = device.allocate("C", ElementType.FLOAT32, side)) {
            fillNormal(a);
            if (flops > 0) {
                Matrix in = Matrix.of(a, 0, PEAK_SIDE, PEAK_SIDE);
                Matrix out = Matrix.of(c, 0, PEAK_SIDE, PEAK_SIDE);
                contest.add(
                        peak,
                        () -> OpenBlasLibrary.setThreads(device.threads()),
                        () -> device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, in, in, 0, out));
            }
            Map<String, Timing> timings = contest.measure(rounds);
            useOneBlasThread();
            double our = timings.values().iterator().next().median();
            return timings.entrySet().stream()
                    .map(e -> {
                        double seconds = e.getValue().median();
                        double ratio = e.getKey().equals(peak)
                                ? flops / our / (2.0 * side * PEAK_SIDE / seconds)
                                : seconds / our;
                        return new BenchReport.Row(
                                what + ": " + e.getKey(), seconds, e.getValue().spread(), 0, ratio);
                    })
                    .toList();
        }
    }

    /** Restores the library's default of one OpenBLAS thread for our own calls. */
    private static void useOneBlasThread() {
        OpenBlasLibrary.setThreads(1);
    }

    private static void fillNormal(Buffer buffer) {
        var random = new Random(42);
        MemorySegment segment = buffer.segment();
        for (long i = 0; i < buffer.length(); i++) {
            segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) random.nextGaussian());
        }
    }

    /**
     * Compares with a relative tolerance of a thousandth: five jordan steps amplify a rounding error about 500 times.
     */
    private static void requireSame(Buffer ours, float[] theirs, long offset) {
        float[] mine = ours.toFloats(offset, theirs.length);
        double difference = 0;
        double whole = 0;
        for (int i = 0; i < theirs.length; i++) {
            difference += ((double) mine[i] - theirs[i]) * ((double) mine[i] - theirs[i]);
            whole += (double) theirs[i] * theirs[i];
        }
        if (!(difference <= 1e-6 * whole)) {
            throw new IllegalStateException(
                    "the two sides disagree: %.3g of %.3g".formatted(Math.sqrt(difference), Math.sqrt(whole)));
        }
    }
}
