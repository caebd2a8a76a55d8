package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.function.Consumer;
import org.fedcomuon.bench.OrthogonalizeSizes.Shape;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.fedcomuon.internal.OpenBlasLibrary;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.MuonPlan;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;

/**
 * Compares the weight step {@code W -= eta O} of a Muon method with usual implementations, in one process and in turns:
 * libtorch, one matrix at a time, with every setting of its threads or on the same GPU, and for small matrices loops
 * over calls of the device's BLAS (OpenBLAS or cuBLAS). Every peer must compute our weights before anything is timed.
 * The limit of the device is a large product of its BLAS in the same run; only the multiplications that remain when
 * symmetry is used are counted. What a GPU does not have is left out, with a note. Our own step in bf16 takes turns
 * with the others, and its weights must be near those of fp32. On a GPU our step with products by cuBLAS, in both
 * precisions, is another contender, also for all matrices of a Transformer of all clients.
 */
public final class OrthogonalizeBench {
    /** The number of samples per contender in a full benchmark. */
    public static final int ROUNDS = 7;

    /** How the name of our own step in bf16 begins. */
    static final String NARROW = "fedcomuon in bf16";

    /** What follows the name of a BLAS in the names of loops over its calls, and of its large product. */
    static final String LOOP = " loop, ";

    static final String PEAK = " sgemm of ";

    /** Those of the CPU, at full size. */
    static final Aims AIMS = Aims.NONE
            .with("(LeNet x 10 clients|768 x 768): OpenBLAS" + PEAK + ".* threads", Aim.atLeast(0.85))
            .with(
                    "(LeNet x 10 clients|768 x 768|768 x 1024|1024 x 4096): (libtorch fp32, |OpenBLAS" + LOOP
                            + ").* threads",
                    Aim.atLeast(1))
            .with("(LeNet|256 x 1024|768 x 1024) x 10 clients, exact: libtorch .* threads", Aim.atLeast(1.5))
            .with("768 x 768 x 10 clients, exact: libtorch .* threads", Aim.atLeast(1.2));

    private static final double ETA = 0.01;
    private static final Coefficients JORDAN = Coefficients.jordan(5);

    private static final List<Shape> LENET =
            List.of(new Shape(6, 25), new Shape(16, 150), new Shape(120, 256), new Shape(10, 120));

    private final Device device;
    private final OrthogonalizeSizes sizes;
    private final int rounds;
    private final TurnListener listener;
    private final Optional<TorchPlace> torch;
    private final List<String> notes = new ArrayList<>();

    private OrthogonalizeBench(Device device, OrthogonalizeSizes sizes, int rounds, TurnListener listener) {
        this.device = device;
        this.sizes = sizes;
        this.rounds = rounds;
        this.listener = listener;
        Optional<String> obstacle = TorchPlace.obstacle(device);
        obstacle.ifPresent(notes::add);
        torch = obstacle.isPresent() ? Optional.empty() : Optional.of(TorchPlace.of(device));
    }

    /**
     * Measures the matrices of LeNet, and each shape by itself with Newton-Schulz; then exact factors, of LeNet and of
     * shapes of all clients. {@code rounds} samples of each contender.
     */
    public static BenchReport run(Device device, OrthogonalizeSizes sizes, int rounds, TurnListener listener) {
        var bench = new OrthogonalizeBench(device, sizes, rounds, listener);
        var rows = new ArrayList<>(bench.lenet());
        rows.addAll(bench.transformer());
        for (Shape shape : sizes.shapes()) {
            rows.addAll(bench.single(shape));
        }
        if (bench.solves()) {
            rows.addAll(bench.exact("LeNet", LENET));
            for (Shape shape : sizes.exact()) {
                rows.addAll(bench.exact(shape.toString(), List.of(shape)));
            }
        }
        return new BenchReport(
                "orthogonalize",
                device.toString(),
                "weight steps W -= eta O with five jordan steps, or exact; ratio = a peer's time relative to ours "
                        + "(> 1: ours is faster); for sgemm, the fraction of its speed that we reach, counting the"
                        + " multiplications that symmetry leaves; for ours in bf16, its speed relative to fp32; cuBLAS on a"
                        + " GPU is our step with products=cublas, also relative to ours in fp32",
                rows,
                bench.notes);
    }

    /** Returns whether the device has a BLAS; otherwise this is noted. */
    private boolean multiplies() {
        try {
            device.blas();
            return true;
        } catch (DeviceException.Unsupported e) {
            leaveOut("products by cuBLAS, loops over BLAS and sgemm are", e);
            return false;
        }
    }

    /** Returns whether the device has an SVD; otherwise this is noted. */
    private boolean solves() {
        try {
            device.solver();
            return true;
        } catch (DeviceException.Unsupported e) {
            leaveOut("exact factors are", e);
            return false;
        }
    }

    /** Returns whether the device multiplies in bf16; otherwise this is noted. */
    private boolean narrows() {
        var smallest = List.of(NewtonSchulzSpec.Block.at(0, 1, 1));
        try (NewtonSchulzSpec.Plan _ = device.plan(inBf16(smallest), 1)) {
            return true;
        } catch (DeviceException.Unsupported e) {
            leaveOut("steps in bf16 are", e);
            return false;
        }
    }

    private static NewtonSchulzSpec inBf16(List<NewtonSchulzSpec.Block> blocks) {
        return new NewtonSchulzSpec(blocks, JORDAN.steps(), JORDAN.divisor(), List.of(), Precision.BF16);
    }

    private void leaveOut(String what, DeviceException.Unsupported reason) {
        String note = "%s left out: %s".formatted(what, reason.getMessage());
        if (!notes.contains(note)) {
            notes.add(note);
        }
    }

    /** Returns the name of the BLAS of the device, without its version. */
    private String blasName() {
        return device.isHost() ? "OpenBLAS" : "cuBLAS";
    }

    private Interleaved contest(String what) {
        return new Interleaved(
                what,
                () -> {
                    device.synchronize();
                    torch.ifPresent(TorchPlace::synchronize);
                },
                listener);
    }

    private List<BenchReport.Row> lenet() {
        var blocks = new ArrayList<NewtonSchulzSpec.Block>();
        long size = 0;
        for (Shape shape : LENET) {
            blocks.add(NewtonSchulzSpec.Block.at(size, shape.rows(), shape.cols()));
            size += (long) shape.rows() * shape.cols();
        }
        long perClient = size;
        int clients = sizes.clients();
        String name = "LeNet x %d clients".formatted(clients);
        var what = new NewtonSchulzSpec(blocks, JORDAN.steps(), JORDAN.divisor());
        boolean narrows = narrows();
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, clients * perClient);
                Buffer ours = device.allocate("W", ElementType.FLOAT32, clients * perClient);
                Buffer theirs = device.allocate("W of the loop", ElementType.FLOAT32, clients * perClient);
                Buffer near = device.allocate("W in bf16", ElementType.FLOAT32, clients * perClient);
                NewtonSchulzSpec.Plan plan = device.plan(what, clients);
                NewtonSchulzSpec.Plan narrow = device.plan(narrows ? inBf16(blocks) : what, clients);
                var matrices = new TorchMatrices(torch.orElse(TorchPlace.cpu()), JORDAN.steps(), ETA)) {
            fillNormal(m);
            Runnable our = () -> plan.step(m.batch(clients, perClient), ETA, ours.batch(clients, perClient));
            our.run();
            Interleaved contest = contest(name).add("fedcomuon, one call", this::useOneBlasThread, our);
            if (narrows) {
                Runnable rounded = () -> narrow.step(m.batch(clients, perClient), ETA, near.batch(clients, perClient));
                rounded.run();
                SameWeights.require(ours, near, Precision.BF16);
                contest.add(NARROW + ", one call", this::useOneBlasThread, rounded);
            }
            if (torch.isPresent()) {
                for (int client = 0; client < clients; client++) {
                    for (NewtonSchulzSpec.Block block : blocks) {
                        matrices.add(
                                m, client * perClient + block.momentumOffset(), (int) block.rows(), (int) block.cols());
                    }
                }
                matrices.stepAll(false);
                long at = 0;
                for (float[] weights : matrices.weights()) {
                    SameWeights.require(ours, weights, at);
                    at += weights.length;
                }
            }
            double multiplications = 0;
            for (Shape shape : LENET) {
                multiplications += clients * shape.flops(JORDAN);
            }
            if (!multiplies()) {
                addTorch(contest, matrices);
                return measure(name, contest, multiplications);
            }
            try (var loop = new BlasLoop(device, blocks, JORDAN.steps(), ETA)) {
                addLoops(contest, loop, ours, m, theirs, perClient);
                addTorch(contest, matrices);
                return measure(name, contest, multiplications);
            }
        }
    }

    /** Returns the steps of all large matrices of a Transformer of all clients on a GPU: grouped, and by cuBLAS. */
    private List<BenchReport.Row> transformer() {
        if (device.isHost()) { // where matrices take turns, so that this would be the single ones again
            return List.of();
        }
        var blocks = new ArrayList<NewtonSchulzSpec.Block>();
        long size = 0;
        double multiplications = 0;
        for (Shape shape : sizes.transformer()) {
            blocks.add(NewtonSchulzSpec.Block.at(size, shape.rows(), shape.cols()));
            size += (long) shape.rows() * shape.cols();
            multiplications += sizes.clients() * shape.flops(JORDAN);
        }
        long perClient = size;
        int clients = sizes.clients();
        String name = "ViT x %d clients".formatted(clients);
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, clients * perClient);
                Buffer ours = device.allocate("W", ElementType.FLOAT32, clients * perClient);
                Buffer others = device.allocate("W of others", ElementType.FLOAT32, clients * perClient);
                var plans = new Plans<MuonPlan>(MuonPlan::close)) {
            fillNormal(m);
            Interleaved contest = contest(name);
            for (Precision precision : narrows() ? List.of(Precision.FP32, Precision.BF16) : List.of(Precision.FP32)) {
                for (Orthogonalizer.Products products : products()) {
                    MuonPlan plan = plans.add(MuonPlan.of(
                            new Auto(JORDAN, precision, products), device, clients, blocks, ScaleRule.NONE));
                    boolean first = precision == Precision.FP32 && products == Orthogonalizer.Products.KERNELS;
                    Buffer w = first ? ours : others;
                    Runnable step = () -> plan.step(m.batch(clients, perClient), ETA, w.batch(clients, perClient));
                    w.zero();
                    step.run();
                    SameWeights.require(ours, w, precision);
                    contest.add(title(precision, products) + ", all matrices", this::useOneBlasThread, step);
                }
            }
            return measure(name, contest, multiplications);
        }
    }

    /** Plans that are closed together. */
    private record Plans<T>(Consumer<T> closing, List<T> all) implements AutoCloseable {
        Plans(Consumer<T> closing) {
            this(closing, new ArrayList<>());
        }

        T add(T plan) {
            all.add(plan);
            return plan;
        }

        @Override
        public void close() {
            all.forEach(closing);
        }
    }

    /** Returns what can multiply large matrices here; cuBLAS on a GPU that has it. */
    private List<Orthogonalizer.Products> products() {
        return device.isHost() || !multiplies()
                ? List.of(Orthogonalizer.Products.KERNELS)
                : List.of(Orthogonalizer.Products.KERNELS, Orthogonalizer.Products.CUBLAS);
    }

    private static String title(Precision precision, Orthogonalizer.Products products) {
        if (products == Orthogonalizer.Products.CUBLAS) {
            return precision == Precision.FP32 ? "cuBLAS" : "cuBLAS in " + precision;
        }
        return precision == Precision.FP32 ? "fedcomuon" : NARROW;
    }

    /** Adds loops over calls of BLAS, if their weights are ours. On a GPU nothing mirrors a triangle. */
    private void addLoops(Interleaved contest, BlasLoop loop, Buffer ours, Buffer m, Buffer theirs, long perClient) {
        List<Boolean> variants = device.isHost() ? List.of(true, false) : List.of(false);
        for (boolean symmetric : variants) {
            theirs.zero();
            loop.step(symmetric, sizes.clients(), m, theirs, perClient);
            SameWeights.require(ours, theirs, Precision.FP32);
        }
        int most = device.isHost() ? device.threads() : 1;
        for (int threads : most > 1 ? new int[] {1, most} : new int[] {1}) {
            for (boolean symmetric : variants) {
                String calls = symmetric ? "syrk + symm" : "gemm";
                contest.add(
                        device.isHost()
                                ? "OpenBLAS%s%s, %d threads".formatted(LOOP, calls, threads)
                                : "cuBLAS%s%s".formatted(LOOP, calls),
                        () -> useBlasThreads(threads),
                        () -> loop.step(symmetric, sizes.clients(), m, theirs, perClient));
            }
        }
    }

    private void addTorch(Interleaved contest, TorchMatrices matrices) {
        addTorch(contest, "fp32", () -> matrices.stepAll(false));
        torch.ifPresent(place -> {
            Map.Entry<String, Runnable> first =
                    place.settings(device.threads()).entrySet().iterator().next();
            contest.add("libtorch bf16, " + first.getKey(), first.getValue(), () -> matrices.stepAll(true));
        });
    }

    /** Returns the steps along exact factors of matrices of these shapes of all clients. */
    private List<BenchReport.Row> exact(String what, List<Shape> shapes) {
        var blocks = new ArrayList<NewtonSchulzSpec.Block>();
        long size = 0;
        for (Shape shape : shapes) {
            blocks.add(NewtonSchulzSpec.Block.at(size, shape.rows(), shape.cols()));
            size += (long) shape.rows() * shape.cols();
        }
        long perClient = size;
        int clients = sizes.clients();
        String name = "%s x %d clients, exact".formatted(what, clients);
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, clients * perClient);
                Buffer ours = device.allocate("W", ElementType.FLOAT32, clients * perClient);
                Buffer others = device.allocate("W of others", ElementType.FLOAT32, clients * perClient);
                var plans = new Plans<MuonPlan>(MuonPlan::close);
                var matrices = new TorchMatrices(torch.orElse(TorchPlace.cpu()), JORDAN.steps(), ETA)) {
            fillNormal(m);
            Interleaved contest = contest(name);
            for (Orthogonalizer how : List.of(new Exact(), new ExactSvd())) {
                MuonPlan plan = plans.add(MuonPlan.of(how, device, clients, blocks, ScaleRule.NONE));
                Buffer w = how instanceof Exact ? ours : others;
                Runnable step = () -> plan.step(m.batch(clients, perClient), ETA, w.batch(clients, perClient));
                step.run();
                SameWeights.require(ours, w, Precision.FP32);
                contest.add("fedcomuon, " + how.name(), this::useOneBlasThread, step);
            }
            if (torch.isPresent()) {
                for (int client = 0; client < clients; client++) {
                    for (NewtonSchulzSpec.Block block : blocks) {
                        matrices.add(
                                m, client * perClient + block.momentumOffset(), (int) block.rows(), (int) block.cols());
                    }
                }
                matrices.exactStepAll();
                long at = 0;
                for (float[] weights : matrices.weights()) {
                    SameWeights.require(ours, weights, at);
                    at += weights.length;
                }
            }
            addTorch(contest, "linalg_svd", matrices::exactStepAll);
            return measure(name, contest, 0);
        }
    }

    private List<BenchReport.Row> single(Shape shape) {
        int rows = shape.rows();
        int cols = shape.cols();
        long size = (long) rows * cols;
        boolean narrows = narrows();
        Orthogonalizer how = new Auto(JORDAN);
        Orthogonalizer other = narrows ? new Auto(JORDAN, Precision.BF16) : how;
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, size);
                Buffer w = device.allocate("W", ElementType.FLOAT32, size);
                Buffer near = device.allocate("W in bf16", ElementType.FLOAT32, size);
                Orthogonalizer.Plan plan = how.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE);
                Orthogonalizer.Plan narrow = other.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE);
                var library = new Plans<Orthogonalizer.Plan>(Orthogonalizer.Plan::close);
                var matrices = new TorchMatrices(torch.orElse(TorchPlace.cpu()), JORDAN.steps(), ETA)) {
            fillNormal(m);
            Runnable our = () -> plan.step(m.batch(1, size), ETA, w.batch(1, size));
            Runnable their = () -> matrices.stepAll(false);
            our.run();
            String what = shape.toString();
            Interleaved contest = contest(what).add("fedcomuon, " + plan.path(), this::useOneBlasThread, our);
            if (narrows) {
                Runnable rounded = () -> narrow.step(m.batch(1, size), ETA, near.batch(1, size));
                rounded.run();
                SameWeights.require(w, near, Precision.BF16);
                contest.add(NARROW + ", " + narrow.path(), this::useOneBlasThread, rounded);
            }
            if (products().contains(Orthogonalizer.Products.CUBLAS)) {
                for (Precision precision :
                        narrows ? List.of(Precision.FP32, Precision.BF16) : List.of(Precision.FP32)) {
                    Orthogonalizer.Plan byCublas =
                            library.add(new Auto(JORDAN, precision, Orthogonalizer.Products.CUBLAS)
                                    .plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.NONE));
                    Runnable step = () -> byCublas.step(m.batch(1, size), ETA, near.batch(1, size));
                    near.zero();
                    step.run();
                    SameWeights.require(w, near, precision);
                    contest.add(
                            "%s, %s".formatted(title(precision, Orthogonalizer.Products.CUBLAS), byCublas.path()),
                            this::useOneBlasThread,
                            step);
                }
            }
            if (torch.isPresent()) {
                matrices.add(m, 0, rows, cols);
                their.run();
                SameWeights.require(w, matrices.weights().getFirst(), 0);
            }
            addTorch(contest, "fp32", their);
            return measure(what, contest, shape.flops(JORDAN));
        }
    }

    /** Adds libtorch, if it computes there, with every setting. */
    private void addTorch(Interleaved contest, String what, Runnable work) {
        torch.ifPresent(place -> place.settings(device.threads())
                .forEach((setting, use) -> contest.add("libtorch %s, %s".formatted(what, setting), use, work)));
    }

    private List<BenchReport.Row> measure(String what, Interleaved contest, double flops) {
        int peakSide = sizes.peakSide();
        String peak =
                blasName() + PEAK + peakSide + (device.isHost() ? ", %d threads".formatted(device.threads()) : "");
        long side = (long) peakSide * peakSide;
        try (Buffer a = device.allocate("A", ElementType.FLOAT32, side);
                Buffer c = device.allocate("C", ElementType.FLOAT32, side)) {
            fillNormal(a);
            if (flops > 0 && multiplies()) {
                Matrix in = Matrix.of(a, 0, peakSide, peakSide);
                Matrix out = Matrix.of(c, 0, peakSide, peakSide);
                contest.add(
                        peak,
                        () -> useBlasThreads(device.threads()),
                        () -> device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, in, in, 0, out));
            }
            Map<String, Timing> timings = contest.measure(rounds);
            useOneBlasThread();
            Timing our = timings.values().iterator().next();
            double ofPeak = flops / (2.0 * side * peakSide);
            return timings.entrySet().stream()
                    .map(e -> {
                        Figure ratio = e.getKey().equals(peak)
                                ? Figure.ratio(e.getValue(), our).times(ofPeak)
                                : e.getKey().startsWith(NARROW)
                                        ? Figure.ratio(our, e.getValue())
                                        : Figure.ratio(e.getValue(), our);
                        return BenchReport.Row.of(what + ": " + e.getKey(), e.getValue(), ratio, AIMS);
                    })
                    .toList();
        }
    }

    /** Restores the library's default of one OpenBLAS thread for our own calls. */
    private void useOneBlasThread() {
        useBlasThreads(1);
    }

    /** Sets the threads of OpenBLAS, which a GPU does not use. */
    private void useBlasThreads(int threads) {
        if (device.isHost()) {
            OpenBlasLibrary.setThreads(threads);
        }
    }

    private static void fillNormal(Buffer buffer) {
        var random = new Random(42);
        var values = new float[Math.toIntExact(buffer.length())];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) random.nextGaussian();
        }
        buffer.copyIn(0, values);
    }
}
