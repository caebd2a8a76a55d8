package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Cleaner;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.fedcomuon.internal.StreamTriad;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.jspecify.annotations.Nullable;

/** A device behind the C interface of {@code native/include/fedcomuon.h}. */
final class NativeDevice implements Device, StreamTriad {
    private static final Cleaner CLEANER = Cleaner.create();

    /** Copies between the host and a device pass through native memory of this size. */
    private static final long STAGE_BYTES = 1 << 20;

    private final Thread owner = Thread.currentThread();
    private final DeviceKind kind;
    private final int ordinal;
    private final String name;
    private final String model;
    private final int threads;
    private final InstructionSet instructionSet;
    private final DeviceMemory memory;
    private final Cleaner.Cleanable cleanable;

    // Confined to the device thread; made once so that an operation allocates nothing.
    private final NativeCalls calls;
    private final MemorySegment answer;
    private MemorySegment workspace = MemorySegment.NULL;
    private MemorySegment weights = MemorySegment.NULL;
    private MemorySegment hostSeeds = MemorySegment.NULL;
    private MemorySegment stage = MemorySegment.NULL;
    // Written by the device thread alone; threads that monitor a device read them.
    private volatile long workspaceBytes;
    private final AtomicLong heldBytes = new AtomicLong(); // by libraries of this device
    private @Nullable OpenBlas openBlas;
    private @Nullable VendorLibraries vendor;

    NativeDevice(DeviceKind kind, int ordinal, String model, int threads, InstructionSet asked) {
        this.kind = kind;
        this.ordinal = ordinal;
        this.name = kind.prefix() + ":" + ordinal;
        if (owner.isVirtual()) {
            throw new IllegalStateException(
                    "%s cannot be opened on a virtual thread: native calls need a platform thread".formatted(name));
        }
        this.model = model;
        this.threads = threads;
        Arena arena = Arena.ofAuto();
        calls = new NativeCalls(arena);
        answer = arena.allocate(ValueLayout.JAVA_LONG, 2);
        calls.check(
                FedComuonNative.fcm_context_create(kind.code(), ordinal, threads, asked.code(), answer, calls.error()),
                "fcm_context_create");
        MemorySegment context = answer.get(FedComuonNative.C_POINTER, 0);
        memory = new DeviceMemory(name, context);
        cleanable = CLEANER.register(this, memory);
        calls.check(FedComuonNative.fcm_context_isa(context, answer, calls.error()), "fcm_context_isa");
        instructionSet = InstructionSet.of(answer.get(ValueLayout.JAVA_INT, 0));
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String model() {
        return model;
    }

    @Override
    public int threads() {
        return threads;
    }

    @Override
    public InstructionSet instructionSet() {
        return instructionSet;
    }

    @Override
    public boolean isHost() {
        return kind == DeviceKind.CPU;
    }

    DeviceKind kind() {
        return kind;
    }

    /** Returns its number within its kind, as CUDA counts too. */
    int ordinal() {
        return ordinal;
    }

    @Override
    public void synchronize() {
        MemorySegment context = context();
        if (!isHost()) {
            calls.check(FedComuonNative.fcm_synchronize(context, calls.error()), "fcm_synchronize");
        }
    }

    @Override
    public void mark(long mark) {
        calls.check(FedComuonNative.fcm_context_mark(context(), mark, calls.error()), "fcm_context_mark");
    }

    @Override
    public StreamEvent event() {
        context();
        return new StreamEvent(memory);
    }

    @Override
    public void await(StreamEvent event) {
        event.await(context());
    }

    @Override
    public CopyStream copyStream() {
        return new CopyStream(this);
    }

    DeviceMemory memory() {
        return memory;
    }

    /** Returns whether everything that the device has been given is done, without waiting. */
    boolean isDone() {
        MemorySegment done = answer; // of a pointer, which has room for an int
        calls.check(FedComuonNative.fcm_query(context(), done, calls.error()), "fcm_query");
        return done.get(FedComuonNative.C_INT, 0) != 0;
    }

    boolean isClosed() {
        return memory.isClosed();
    }

    /** Opens a device that belongs to its thread as long as that lives, so that nobody closes it. */
    static NativeDevice ofThread() {
        NativeCalls.requireLibrary();
        var device = new NativeDevice(DeviceKind.CPU, 0, "", 1, InstructionSet.AUTO);
        device.memory.leaveToCleaner();
        return device;
    }

    @Override
    public MemorySegment stream() {
        calls.check(FedComuonNative.fcm_context_stream(context(), answer, calls.error()), "fcm_context_stream");
        return answer.get(FedComuonNative.C_POINTER, 0);
    }

    @Override
    public Buffer allocate(String label, ElementType type, long length) {
        BufferMemory allocated = memory.allocate(label, type, length);
        var buffer = new Buffer(this, allocated);
        CLEANER.register(buffer, allocated);
        return buffer;
    }

    @Override
    public Buffer view(String label, ElementType type, MemorySegment host) {
        context();
        if (!isHost() || !host.isNative() || host.address() % type.bytes() != 0) {
            throw new DeviceException.InvalidOperand(
                    "%s: %s cannot be used in place by %s".formatted(label, host, name));
        }
        return new Buffer(this, memory.view(label, type, host));
    }

    @Override
    public long liveBytes() {
        return memory.liveBytes() - workspaceBytes - heldBytes.get();
    }

    @Override
    public long peakBytes() {
        return memory.peakBytes();
    }

    @Override
    public Blas blas() {
        return isHost() ? openBlas() : vendor().blas();
    }

    @Override
    public Solver solver() {
        return isHost() ? openBlas() : vendor().solver();
    }

    private VendorLibraries vendor() {
        context();
        if (vendor == null) {
            vendor = VendorLibraries.of(this);
        }
        return vendor;
    }

    /**
     * Allocates a workspace for a library of this device, until {@link #release} or the end of the device; not a
     * buffer.
     */
    MemorySegment hold(long bytes) {
        context();
        MemorySegment held = memory.address(bytes).reinterpret(bytes);
        heldBytes.addAndGet(bytes);
        return held;
    }

    /** Frees what {@link #hold} allocated. */
    void release(MemorySegment held) {
        context();
        memory.free(held);
        heldBytes.addAndGet(-held.byteSize());
    }

    private OpenBlas openBlas() {
        context();
        if (openBlas == null) {
            openBlas = new OpenBlas(this);
        }
        return openBlas;
    }

    @Override
    public void ema(double a, Batch x, Batch y) {
        same(x, y, x.length(), y.length());
        calls.check(
                FedComuonNative.fcm_ema(
                        context(), y.clients(), y.length(), a, at(x), x.stride(), at(y), y.stride(), calls.error()),
                "fcm_ema");
    }

    @Override
    public void composeMomentum(double b, Batch h, Batch v, Batch m) {
        long d = dimension(h, v, m);
        calls.check(
                FedComuonNative.fcm_compose_momentum(
                        context(),
                        m.clients(),
                        m.length(),
                        d,
                        b,
                        at(h),
                        h.stride(),
                        at(v),
                        v.stride(),
                        at(m),
                        m.stride(),
                        calls.error()),
                "fcm_compose_momentum");
    }

    @Override
    public void storm(double g, Batch gNew, Batch gOld, Batch h, Batch norms) {
        same(gNew, h, gNew.length(), h.length());
        same(gOld, h, gOld.length(), h.length());
        MemorySegment context = context();
        int status;
        do {
            status = FedComuonNative.fcm_storm(
                    context,
                    h.clients(),
                    h.length(),
                    g,
                    at(gNew),
                    gNew.stride(),
                    at(gOld),
                    gOld.stride(),
                    at(h),
                    h.stride(),
                    norms(norms, h),
                    workspace,
                    workspaceBytes,
                    calls.error());
        } while (grew(status));
        calls.check(status, "fcm_storm");
    }

    @Override
    public void projectComposeMomentum(double radius, Batch norms, double b, Batch h, Batch v, Batch m) {
        long d = dimension(h, v, m);
        calls.check(
                FedComuonNative.fcm_project_compose_momentum(
                        context(),
                        m.clients(),
                        m.length(),
                        d,
                        radius,
                        norms(norms, m),
                        b,
                        at(h),
                        h.stride(),
                        at(v),
                        v.stride(),
                        at(m),
                        m.stride(),
                        calls.error()),
                "fcm_project_compose_momentum");
    }

    @Override
    public void project(double radius, Batch norms, Batch x) {
        calls.check(
                FedComuonNative.fcm_project(
                        context(), x.clients(), x.length(), radius, norms(norms, x), at(x), x.stride(), calls.error()),
                "fcm_project");
    }

    @Override
    public NewtonSchulzSpec.Plan plan(NewtonSchulzSpec what, long clients) {
        int blocks = what.blocks().size();
        MemorySegment context = context();
        calls.check(
                FedComuonNative.fcm_newton_schulz_workspace(
                        context, clients, what.table(), blocks, what.iteration(), answer, calls.error()),
                "fcm_newton_schulz_workspace");
        var workspace = new PreparedWorkspace(this, answer.get(ValueLayout.JAVA_LONG, 0));
        prepared(
                workspace,
                FedComuonNative.fcm_newton_schulz_prepare(
                        context,
                        clients,
                        what.table(),
                        blocks,
                        what.iteration(),
                        workspace.memory(),
                        workspace.bytes(),
                        calls.error()),
                "fcm_newton_schulz_prepare");
        return new NewtonSchulzSpec.Plan(this, what, workspace);
    }

    @Override
    public VectorStepSpec.Plan plan(VectorStepSpec what, long clients) {
        int blocks = what.blocks().size();
        MemorySegment context = context();
        calls.check(
                FedComuonNative.fcm_vector_steps_workspace(
                        context, clients, what.table(), blocks, answer, calls.error()),
                "fcm_vector_steps_workspace");
        var workspace = new PreparedWorkspace(this, answer.get(ValueLayout.JAVA_LONG, 0));
        prepared(
                workspace,
                FedComuonNative.fcm_vector_steps_prepare(
                        context, clients, what.table(), blocks, workspace.memory(), workspace.bytes(), calls.error()),
                "fcm_vector_steps_prepare");
        return new VectorStepSpec.Plan(this, what, workspace);
    }

    private void prepared(PreparedWorkspace workspace, int status, String function) {
        try {
            calls.check(status, function);
        } catch (DeviceException e) {
            workspace.close();
            throw e;
        }
    }

    void newtonSchulz(NewtonSchulzSpec what, PreparedWorkspace prepared, Batch m, Batch o) {
        same(m, o, 0, 0);
        for (NewtonSchulzSpec.Block block : what.blocks()) {
            inside("result", block.resultOffset(), block.rows(), block.cols(), o);
        }
        newtonSchulz(what, prepared, m, 0.0, at(o), o.stride(), MemorySegment.NULL, 0);
    }

    void newtonSchulzStep(NewtonSchulzSpec what, PreparedWorkspace prepared, Batch m, double eta, Batch w) {
        same(m, w, 0, 0);
        for (NewtonSchulzSpec.Block block : what.blocks()) {
            inside("weights", block.weightOffset(), block.rows(), block.cols(), w);
        }
        newtonSchulz(what, prepared, m, eta, MemorySegment.NULL, 0, at(w), w.stride());
    }

    private void newtonSchulz(
            NewtonSchulzSpec what,
            PreparedWorkspace prepared,
            Batch m,
            double eta,
            MemorySegment o,
            long oStride,
            MemorySegment w,
            long wStride) {
        for (NewtonSchulzSpec.Block block : what.blocks()) {
            inside("momentum", block.momentumOffset(), block.rows(), block.cols(), m);
        }
        calls.check(
                FedComuonNative.fcm_newton_schulz(
                        context(),
                        m.clients(),
                        what.table(),
                        what.blocks().size(),
                        what.iteration(),
                        eta,
                        at(m),
                        m.stride(),
                        o,
                        oStride,
                        w,
                        wStride,
                        prepared.memory(),
                        prepared.bytes(),
                        calls.error()),
                "fcm_newton_schulz");
    }

    void vectorSteps(VectorStepSpec what, PreparedWorkspace prepared, Batch m, double eta, Batch w) {
        same(m, w, 0, 0);
        for (VectorStepSpec.Block block : what.blocks()) {
            inside("momentum", block.momentumOffset(), 1, block.length(), m);
            inside("weights", block.weightOffset(), 1, block.length(), w);
        }
        calls.check(
                FedComuonNative.fcm_vector_steps(
                        context(),
                        m.clients(),
                        what.table(),
                        what.blocks().size(),
                        what.rule().code(),
                        eta,
                        at(m),
                        m.stride(),
                        at(w),
                        w.stride(),
                        prepared.memory(),
                        prepared.bytes(),
                        calls.error()),
                "fcm_vector_steps");
    }

    @Override
    public void normalize(double divisor, Batch x, Batch y) {
        same(x, y, x.length(), y.length());
        MemorySegment context = context();
        int status;
        do {
            status = FedComuonNative.fcm_normalize(
                    context,
                    y.clients(),
                    y.length(),
                    divisor,
                    at(x),
                    x.stride(),
                    at(y),
                    y.stride(),
                    workspace,
                    workspaceBytes,
                    calls.error());
        } while (grew(status));
        calls.check(status, "fcm_normalize");
    }

    @Override
    public void requireLibrary() {
        if (isHost()) {
            throw new DeviceException.Unsupported(
                    "%s multiplies by its own kernels: cuBLAS takes a GPU".formatted(name));
        }
        if (!vendor().multiplies()) {
            vendor().title(); // throws the reason
        }
    }

    @Override
    public String multipliesBy() {
        return isHost() || !vendor().multiplies() ? "fcm_multiply" : vendor().title();
    }

    @Override
    public void multiply(
            Precision precision, double factor, MatrixBatch a, MatrixBatch b, boolean symmetric, MatrixBatch out) {
        multiply(new VendorLibraries.Product(precision, factor, a, b, 0.0, null, symmetric, out));
    }

    @Override
    public void multiply(
            Precision precision,
            double factor,
            MatrixBatch a,
            MatrixBatch b,
            double baseFactor,
            MatrixBatch base,
            boolean symmetric,
            MatrixBatch out) {
        if (!base.isPlain()
                || base.clients() != out.clients()
                || base.rows() != out.rows()
                || base.cols() != out.cols()) {
            throw new DeviceException.InvalidOperand("%s is not shaped like %s, row-major without gaps"
                    .formatted(base.buffer().label(), out.buffer().label()));
        }
        multiply(new VendorLibraries.Product(precision, factor, a, b, baseFactor, base, symmetric, out));
    }

    private void multiply(VendorLibraries.Product product) {
        MatrixBatch a = product.a();
        MatrixBatch b = product.b();
        MatrixBatch base = product.base();
        MatrixBatch out = product.out();
        if (a.clients() != out.clients()
                || b.clients() != out.clients()
                || a.rows() != out.rows()
                || b.cols() != out.cols()
                || a.cols() != b.rows()
                || !out.isPlain()) {
            throw new DeviceException.InvalidOperand(
                    "multiply: %d of %s (%d x %d) times %d of %s (%d x %d) do not give %d of %s (%d x %d)"
                            .formatted(
                                    a.clients(),
                                    a.buffer().label(),
                                    a.rows(),
                                    a.cols(),
                                    b.clients(),
                                    b.buffer().label(),
                                    b.rows(),
                                    b.cols(),
                                    out.clients(),
                                    out.buffer().label(),
                                    out.rows(),
                                    out.cols()));
        }
        MemorySegment context = context();
        if (product.precision() != Precision.FP32) {
            requireLibrary();
        }
        if (!isHost() && vendor().takes(product)) {
            vendor().multiply(product);
            return;
        }
        int status;
        do {
            status = FedComuonNative.fcm_multiply(
                    context,
                    out.clients(),
                    out.rows(),
                    out.cols(),
                    a.cols(),
                    product.symmetric() ? 1 : 0,
                    product.factor(),
                    at(a),
                    a.stride(),
                    a.rowStride(),
                    a.colStride(),
                    at(b),
                    b.stride(),
                    b.rowStride(),
                    b.colStride(),
                    product.baseFactor(),
                    base == null ? MemorySegment.NULL : at(base),
                    base == null ? 0 : base.stride(),
                    at(out),
                    out.stride(),
                    workspace,
                    workspaceBytes,
                    calls.error());
        } while (grew(status));
        calls.check(status, "fcm_multiply");
    }

    @Override
    public void rearrange(MatrixBatch x, MatrixBatch y) {
        if (x.clients() != y.clients() || x.rows() != y.rows() || x.cols() != y.cols()) {
            throw new DeviceException.InvalidOperand("%d of %s (%d x %d) are not shaped like %d of %s (%d x %d)"
                    .formatted(
                            x.clients(),
                            x.buffer().label(),
                            x.rows(),
                            x.cols(),
                            y.clients(),
                            y.buffer().label(),
                            y.rows(),
                            y.cols()));
        }
        x.buffer().requireType(y.buffer().type());
        calls.check(
                FedComuonNative.fcm_rearrange(
                        context(),
                        y.clients(),
                        y.rows(),
                        y.cols(),
                        y.buffer().type().bytes(),
                        x.buffer().at(this, x.offset()),
                        x.stride(),
                        x.rowStride(),
                        x.colStride(),
                        y.buffer().at(this, y.offset()),
                        y.stride(),
                        y.rowStride(),
                        y.colStride(),
                        calls.error()),
                "fcm_rearrange");
    }

    @Override
    public void average(Batch x) {
        average(x, MemorySegment.NULL, x.clients());
    }

    @Override
    public void average(Batch x, double[] clientWeights, long terms) {
        requireWeights(clientWeights, x);
        average(x, hostWeights(MeanWeights.scaled(clientWeights)), terms);
    }

    private static void requireWeights(double[] clientWeights, Batch x) {
        if (clientWeights.length != x.clients()) {
            throw new DeviceException.InvalidOperand("%d weights for the %d clients of %s"
                    .formatted(clientWeights.length, x.clients(), x.buffer().label()));
        }
    }

    /** Returns the weights in native memory; null's segment when all are 1, so that nothing is multiplied by them. */
    private MemorySegment hostWeights(double[] clientWeights) {
        context(); // the weights are the owner's too
        if (Arrays.stream(clientWeights).allMatch(weight -> weight == 1)) {
            return MemorySegment.NULL;
        }
        if (weights.byteSize() < 8L * clientWeights.length) {
            weights = Arena.ofAuto().allocate(ValueLayout.JAVA_DOUBLE, clientWeights.length);
        }
        MemorySegment.copy(clientWeights, 0, weights, ValueLayout.JAVA_DOUBLE, 0, clientWeights.length);
        return weights;
    }

    @Override
    public void average(List<Batch> rows, double[] clientWeights, long terms, List<Batch> targets) {
        if (clientWeights.length != rows.size() || rows.isEmpty()) {
            throw new DeviceException.InvalidOperand(
                    "%d weights for %d rows".formatted(clientWeights.length, rows.size()));
        }
        long length = rows.getFirst().length();
        try (Arena local = Arena.ofConfined()) {
            calls.check(
                    FedComuonNative.fcm_average_rows(
                            context(),
                            rows.size(),
                            length,
                            hostWeights(MeanWeights.scaled(clientWeights)),
                            terms,
                            addresses(local, rows, ElementType.FLOAT32, length),
                            targets.size(),
                            addresses(local, targets, ElementType.FLOAT32, length),
                            calls.error()),
                    "fcm_average_rows");
        }
    }

    /** Returns a table of the addresses of vectors, on whichever devices they are. */
    private static MemorySegment addresses(Arena arena, List<Batch> vectors, ElementType type, long length) {
        MemorySegment table = arena.allocate(ValueLayout.ADDRESS, vectors.size());
        for (int i = 0; i < vectors.size(); i++) {
            Batch vector = vectors.get(i);
            table.setAtIndex(
                    ValueLayout.ADDRESS, i, ((NativeDevice) vector.buffer().device()).at(vector, type, length));
        }
        return table;
    }

    /** Returns where a single vector of this type and length is. */
    private MemorySegment at(Batch vector, ElementType type, long length) {
        vector.buffer().requireType(type);
        if (vector.clients() != 1 || vector.length() != length) {
            throw new DeviceException.InvalidOperand("%s: %d vectors of %d elements, not one of %d"
                    .formatted(vector.buffer().label(), vector.clients(), vector.length(), length));
        }
        return vector.buffer().at(this, vector.offset());
    }

    @Override
    public void meanExponents(Batch x, double[] clientWeights, Batch exponents) {
        requireWeights(clientWeights, x);
        calls.check(
                FedComuonNative.fcm_mean_exponents(
                        context(),
                        x.clients(),
                        x.length(),
                        hostWeights(clientWeights),
                        at(x),
                        x.stride(),
                        at(exponents, ElementType.UINT8, x.length()),
                        calls.error()),
                "fcm_mean_exponents");
    }

    @Override
    public void meanSums(Batch x, double[] clientWeights, long terms, Batch exponents, Batch sums) {
        requireWeights(clientWeights, x);
        calls.check(
                FedComuonNative.fcm_mean_sums(
                        context(),
                        x.clients(),
                        x.length(),
                        hostWeights(clientWeights),
                        terms,
                        at(x),
                        x.stride(),
                        at(exponents, ElementType.UINT8, x.length()),
                        at(sums, ElementType.INT64, x.length()),
                        calls.error()),
                "fcm_mean_sums");
    }

    @Override
    public void combineExponents(List<Batch> parts, Batch to) {
        try (Arena local = Arena.ofConfined()) {
            calls.check(
                    FedComuonNative.fcm_mean_combine(
                            context(),
                            parts.size(),
                            to.length(),
                            addresses(local, parts, ElementType.UINT8, to.length()),
                            at(to, ElementType.UINT8, to.length()),
                            calls.error()),
                    "fcm_mean_combine");
        }
    }

    @Override
    public void finishMean(List<Batch> sums, Batch exponents, long terms, double total, List<Batch> targets) {
        long length = exponents.length();
        try (Arena local = Arena.ofConfined()) {
            calls.check(
                    FedComuonNative.fcm_mean_finish(
                            context(),
                            sums.size(),
                            length,
                            terms,
                            total,
                            addresses(local, sums, ElementType.INT64, length),
                            at(exponents, ElementType.UINT8, length),
                            targets.size(),
                            addresses(local, targets, ElementType.FLOAT32, length),
                            calls.error()),
                    "fcm_mean_finish");
        }
    }

    @Override
    public boolean reaches(Device other) {
        calls.check(
                FedComuonNative.fcm_context_reaches(
                        context(), ((NativeDevice) other).memory.context(), answer, calls.error()),
                "fcm_context_reaches");
        return answer.get(FedComuonNative.C_INT, 0) != 0;
    }

    private void average(Batch x, MemorySegment clientWeights, long terms) {
        calls.check(
                FedComuonNative.fcm_average(
                        context(), x.clients(), x.length(), clientWeights, terms, at(x), x.stride(), calls.error()),
                "fcm_average");
    }

    @Override
    public void vectorStep(double eta, Batch m, Batch w) {
        same(m, w, m.length(), w.length());
        calls.check(
                FedComuonNative.fcm_vector_step(
                        context(), w.clients(), w.length(), eta, at(m), m.stride(), at(w), w.stride(), calls.error()),
                "fcm_vector_step");
    }

    @Override
    public void adaptiveStep(
            Device.AdaptiveRule rule,
            double beta1,
            double beta2,
            double epsilon,
            double eta,
            Batch delta,
            Batch m,
            Batch v,
            Batch w) {
        same(delta, w, delta.length(), w.length());
        same(m, w, m.length(), w.length());
        same(v, w, v.length(), w.length());
        calls.check(
                FedComuonNative.fcm_adaptive_step(
                        context(),
                        w.clients(),
                        w.length(),
                        rule.code(),
                        beta1,
                        beta2,
                        epsilon,
                        eta,
                        at(delta),
                        delta.stride(),
                        at(m),
                        m.stride(),
                        at(v),
                        v.stride(),
                        at(w),
                        w.stride(),
                        calls.error()),
                "fcm_adaptive_step");
    }

    @Override
    public void topK(long k, Batch x, Batch y) {
        same(x, y, x.length(), y.length());
        calls.check(
                FedComuonNative.fcm_top_k(
                        context(), y.clients(), y.length(), k, at(x), x.stride(), at(y), y.stride(), calls.error()),
                "fcm_top_k");
    }

    @Override
    public void dropoutMask(int left, long[] seeds, MemorySegment masks) {
        if (seeds.length == 0 ? masks.byteSize() > 0 : masks.byteSize() % seeds.length != 0) {
            throw new DeviceException.InvalidOperand(
                    "%d bytes of masks for %d clients".formatted(masks.byteSize(), seeds.length));
        }
        MemorySegment context = context(); // the seeds are the owner's too
        if (hostSeeds.byteSize() < (long) Long.BYTES * seeds.length) {
            hostSeeds = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG, seeds.length);
        }
        MemorySegment.copy(seeds, 0, hostSeeds, ValueLayout.JAVA_LONG, 0, seeds.length);
        long n = seeds.length == 0 ? 0 : masks.byteSize() / seeds.length;
        calls.check(
                FedComuonNative.fcm_dropout_mask(context, seeds.length, n, left, hostSeeds, masks, n, calls.error()),
                "fcm_dropout_mask");
    }

    @Override
    public void norm(Batch x, Batch norms) {
        MemorySegment context = context();
        int status;
        do {
            status = FedComuonNative.fcm_norm(
                    context,
                    x.clients(),
                    x.length(),
                    at(x),
                    x.stride(),
                    norms(norms, x),
                    workspace,
                    workspaceBytes,
                    calls.error());
        } while (grew(status));
        calls.check(status, "fcm_norm");
    }

    @Override
    public Optional<Device.Position> firstNotFinite(Batch x) {
        MemorySegment context = context();
        MemorySegment index = answer.asSlice(Long.BYTES);
        calls.check(
                FedComuonNative.fcm_all_finite(
                        context, x.clients(), x.length(), at(x), x.stride(), answer, index, calls.error()),
                "fcm_all_finite");
        long client = answer.get(ValueLayout.JAVA_LONG, 0);
        return client < 0
                ? Optional.empty()
                : Optional.of(new Device.Position(client, -1, index.get(ValueLayout.JAVA_LONG, 0)));
    }

    @Override
    public void requireFinite(Batch x) {
        requireFinite(x, MemorySegment.NULL, 0);
    }

    @Override
    public void requireFinite(Batch x, Batch of) {
        same(x, of, 0, 0);
        requireFinite(x, at(of), of.stride());
    }

    private void requireFinite(Batch x, MemorySegment of, long ofStride) {
        calls.check(
                FedComuonNative.fcm_require_finite(
                        context(), x.clients(), x.length(), at(x), x.stride(), of, ofStride, calls.error()),
                "fcm_require_finite");
    }

    /** Computes y = x in double; y is on this device, without gaps between the clients. */
    void widen(Batch x, MemorySegment y) {
        calls.check(
                FedComuonNative.fcm_widen(context(), x.clients(), x.length(), at(x), x.stride(), y, calls.error()),
                "fcm_widen");
    }

    /** Computes y = x, rounded; x is on this device, in double and without gaps between the clients. */
    void narrow(MemorySegment x, Batch y) {
        calls.check(
                FedComuonNative.fcm_narrow(context(), y.clients(), y.length(), x, at(y), y.stride(), calls.error()),
                "fcm_narrow");
    }

    /**
     * Sets the eigenvectors to zero that a tolerance leaves out; all on this device.
     *
     * @param info an int for each matrix, 0 where it converged
     * @param values ascending, n of each matrix
     * @param vectors n x n, one in a row
     * @param kept receives a long for each matrix
     */
    void keepDirections(
            int count,
            int n,
            double tolerance,
            MemorySegment info,
            MemorySegment values,
            MemorySegment vectors,
            MemorySegment kept) {
        calls.check(
                FedComuonNative.fcm_keep_directions(
                        context(), count, n, tolerance, info, values, vectors, kept, calls.error()),
                "fcm_keep_directions");
    }

    /** Replaces nearly diagonal matrices, n x n and on this device, by their inverse roots: the upper triangles. */
    void inverseRoots(int count, int n, MemorySegment gram) {
        calls.check(FedComuonNative.fcm_inverse_roots(context(), count, n, gram, calls.error()), "fcm_inverse_roots");
    }

    @Override
    public void triad(long n, float s, long b, long c, long a, boolean nonTemporal) {
        calls.check(
                FedComuonNative.fcm_triad(
                        context(),
                        n,
                        s,
                        MemorySegment.ofAddress(b),
                        MemorySegment.ofAddress(c),
                        MemorySegment.ofAddress(a),
                        nonTemporal ? 1 : 0,
                        calls.error()),
                "fcm_triad");
    }

    /** Returns the native memory of the device thread that copies pass through: pinned on a GPU, and allocated once. */
    MemorySegment stage() {
        context();
        if (stage.byteSize() == 0) {
            stage = memory.hostAddress(STAGE_BYTES);
        }
        return stage;
    }

    Buffer.Mirror mirror(Buffer buffer, BufferMemory of) {
        context();
        if (isHost()) {
            return new Buffer.Mirror(buffer, this, null);
        }
        BufferMemory pinned = memory.allocateHost(of);
        var mirror = new Buffer.Mirror(buffer, this, pinned);
        CLEANER.register(mirror, pinned);
        return mirror;
    }

    void zero(Buffer buffer) {
        zero(buffer.at(this, 0).asSlice(0, buffer.length() * buffer.type().bytes()));
    }

    /** Sets all bytes of {@code memory}, which is on this device, to zero. */
    void zero(MemorySegment memory) {
        calls.check(FedComuonNative.fcm_zero(context(), memory, memory.byteSize(), calls.error()), "fcm_zero");
    }

    void copyIn(Buffer to, long byteOffset, MemorySegment from, long bytes) {
        calls.check(
                FedComuonNative.fcm_copy_in(context(), to.at(this, 0).asSlice(byteOffset), from, bytes, calls.error()),
                "fcm_copy_in");
    }

    void copyOut(Buffer from, long byteOffset, MemorySegment to, long bytes) {
        calls.check(
                FedComuonNative.fcm_copy_out(context(), to, from.at(this, 0).asSlice(byteOffset), bytes, calls.error()),
                "fcm_copy_out");
    }

    void copyInAsync(Buffer to, long offset, MemorySegment from, long count) {
        calls.check(
                FedComuonNative.fcm_copy_in_async(
                        context(), to.at(this, offset), from, count * to.type().bytes(), calls.error()),
                "fcm_copy_in_async");
    }

    void copyOutAsync(Buffer from, long offset, MemorySegment to, long count) {
        calls.check(
                FedComuonNative.fcm_copy_out_async(
                        context(),
                        to,
                        from.at(this, offset),
                        count * from.type().bytes(),
                        calls.error()),
                "fcm_copy_out_async");
    }

    void copy(Buffer to, long offset, Buffer from, long fromOffset, long count) {
        var source = (NativeDevice) from.device();
        calls.check(
                FedComuonNative.fcm_copy(
                        context(),
                        to.at(this, offset),
                        source.memory.context(),
                        from.at(source, fromOffset),
                        count * to.type().bytes(),
                        calls.error()),
                "fcm_copy");
    }

    /** Returns the native context, on the right thread and alive. Comes first in every operation. */
    MemorySegment context() {
        if (!owner.equals(Thread.currentThread())) {
            throw new WrongThreadException("%s belongs to thread %s, not to %s"
                    .formatted(name, owner.getName(), Thread.currentThread().getName()));
        }
        return memory.context();
    }

    private MemorySegment at(Batch batch) {
        batch.buffer().requireType(ElementType.FLOAT32);
        return batch.buffer().at(this, batch.offset());
    }

    private MemorySegment at(MatrixBatch batch) {
        batch.buffer().requireType(ElementType.FLOAT32);
        return batch.buffer().at(this, batch.offset());
    }

    private MemorySegment norms(Batch norms, Batch of) {
        norms.buffer().requireType(ElementType.FLOAT64);
        if (norms.clients() != of.clients() || norms.length() != 1 || norms.stride() != 1) {
            throw new DeviceException.InvalidOperand(
                    "%s has %d norms of %d elements, %d apart, not one for each of %d clients"
                            .formatted(
                                    norms.buffer().label(),
                                    norms.clients(),
                                    norms.length(),
                                    norms.stride(),
                                    of.clients()));
        }
        return norms.buffer().at(this, norms.offset());
    }

    private static void same(Batch a, Batch b, long lengthA, long lengthB) {
        if (a.clients() != b.clients() || lengthA != lengthB) {
            throw new DeviceException.InvalidOperand("%s has %d clients of %d elements, but %s has %d of %d"
                    .formatted(
                            a.buffer().label(),
                            a.clients(),
                            a.length(),
                            b.buffer().label(),
                            b.clients(),
                            b.length()));
        }
    }

    private static long dimension(Batch h, Batch v, Batch m) {
        same(h, m, 0, 0);
        same(v, m, 0, 0);
        long d = v.length();
        if (d < 1 || h.length() % d != 0 || h.length() / d != m.length()) {
            throw new DeviceException.InvalidOperand(
                    "%s has %d elements per client, not the %d of %s times the %d of %s"
                            .formatted(
                                    h.buffer().label(),
                                    h.length(),
                                    m.length(),
                                    m.buffer().label(),
                                    d,
                                    v.buffer().label()));
        }
        return d;
    }

    private static void inside(String what, long offset, long rows, long cols, Batch batch) {
        long end;
        try {
            end = Math.addExact(offset, Math.multiplyExact(rows, cols));
        } catch (ArithmeticException e) {
            end = Long.MAX_VALUE;
        }
        if (offset < 0 || end > batch.length()) {
            throw new DeviceException.InvalidOperand("the %s of a %d x %d block at %d is outside the %d elements of %s"
                    .formatted(
                            what,
                            rows,
                            cols,
                            offset,
                            batch.length(),
                            batch.buffer().label()));
        }
    }

    /** Returns whether a call was refused because the workspace was too small; then it is large enough now. */
    private boolean grew(int status) {
        long needed = calls.workspaceNeeded(status);
        if (needed <= workspaceBytes) {
            return false;
        }
        growWorkspace(needed);
        return true;
    }

    /**
     * Grows to the largest that any operation asked for, and then stays: a training loop allocates in its first step.
     */
    private void growWorkspace(long bytes) {
        if (workspaceBytes > 0) {
            memory.free(workspace);
            workspace = MemorySegment.NULL;
            workspaceBytes = 0;
        }
        workspace = memory.address(bytes);
        workspaceBytes = bytes;
    }

    @Override
    public void close() {
        if (memory.isClosed()) {
            return;
        }
        if (owner.isAlive()) { // a device may outlive its thread; then any thread may close it
            context();
        }
        try {
            if (vendor != null && owner.equals(Thread.currentThread())) {
                vendor.close();
            }
            if (openBlas != null) {
                openBlas.close();
            }
        } finally {
            memory.close();
            cleanable.clean();
        }
    }

    @Override
    public String toString() {
        return isHost()
                ? "%s (%s, %d threads, %s)".formatted(name, model, threads, instructionSet)
                : "%s (%s)".formatted(name, model);
    }
}
