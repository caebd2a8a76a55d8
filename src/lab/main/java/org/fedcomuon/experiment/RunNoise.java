package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.federation.CheckpointException;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.RunFiles;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/**
 * How noisy the inner functions of a run's clients are at the model of its newest checkpoint, by size of batches and
 * learning rate, and how far the trackers u of the checkpoint are from them: whether variance reduction pays.
 *
 * <p>The iterate before is where the orthogonalized momentum of the checkpoint has led away from.
 *
 * <p>Immutable.
 *
 * @param step that the checkpoint was written after
 * @param alpha of the run at its last step
 * @param rows by batch, rate and client
 */
public record RunNoise(Path run, String method, long step, double alpha, List<Row> rows) {
    /** Far from the draws of any run. */
    private static final long FIRST_DRAW = 1L << 40;

    public RunNoise {
        rows = List.copyOf(rows);
    }

    /**
     * A client with one size of batches and one learning rate.
     *
     * <p>Immutable, provided that the arrays of the errors are not changed.
     *
     * @param tracker the distance of the run's tracker from the mean of g; empty where batches are not those of the run
     * @param uncertainty the standard error of that mean
     */
    public record Row(
            int client, int batch, double eta, TrackerErrors errors, OptionalDouble tracker, double uncertainty) {}

    /**
     * What to measure.
     *
     * @param batches sizes of batches; that of the run if empty
     * @param etas learning rates
     * @param clients by number; all if empty
     * @param samples of each client
     */
    public record Request(List<Integer> batches, List<Double> etas, List<Integer> clients, int samples) {
        public Request {
            batches = List.copyOf(batches);
            etas = List.copyOf(etas);
            clients = List.copyOf(clients);
        }
    }

    /**
     * Measures a run.
     *
     * @param run the directory of a run of FedCoMuon or FedCoMuon-VR, finished or not
     * @param progress receives a line per client
     * @throws RunRecordException when there is no such run, or its checkpoint lacks what is needed
     * @throws ConfigurationException when the data are missing, or there is no such client
     */
    public static RunNoise of(Path run, Request what, Optional<Path> dataDirectory, Consumer<String> progress)
            throws Exception {
        Configuration configuration = Training.configurationOf(run, Map.of());
        var store = new CheckpointStore(new RunFiles(run).checkpoints());
        if (!Files.isDirectory(run) || store.newest().isEmpty()) {
            throw new RunRecordException(
                    run, "holds no checkpoint; 'train' leaves them in its directory of checkpoints");
        }
        try (SafetensorsFile file = store.openNewest()) {
            for (String name : List.of("W", "M", "u")) {
                if (!file.tensors().containsKey(name)) {
                    throw new RunRecordException(
                            file.path(),
                            "the method %s keeps no %s; fedcomuon and fedcomuon-vr do"
                                    .formatted(configuration.text("method"), name));
                }
            }
            return measure(run, configuration, file, what, dataDirectory, progress);
        } catch (CheckpointException | IOException e) {
            throw new RunRecordException(run, String.valueOf(e.getMessage()), e);
        }
    }

    private static RunNoise measure(
            Path run,
            Configuration configuration,
            SafetensorsFile file,
            Request what,
            Optional<Path> dataDirectory,
            Consumer<String> progress)
            throws Exception {
        var point = new State(file);
        int own = configuration.integer("batch");
        var rows = new ArrayList<Row>();
        for (int batch : what.batches().isEmpty() ? List.of(own) : what.batches()) {
            Configuration changed = Training.configurationOf(run, Map.of("batch", Integer.toString(batch)));
            try (var task = new NetworkTask(changed, dataDirectory, 1, 1, 1, estimate -> {})) {
                Problem problem = task.problem();
                for (int k : clients(what, problem)) {
                    for (double eta : what.etas()) {
                        Point before = point.before(changed.muon(), eta);
                        TrackerErrors errors = sample(problem, k, changed.seed(), point.w, before, what.samples());
                        rows.add(new Row(
                                k,
                                batch,
                                eta,
                                errors,
                                batch == own ? point.tracker(k, errors) : OptionalDouble.empty(),
                                errors.deviation() / Math.sqrt(what.samples())));
                    }
                    progress.accept("batch %d, client %d".formatted(batch, k));
                }
            }
        }
        long step = CheckpointStore.step(file.path());
        var last = new Method.Step(Math.max(0, step - 1), configuration.integer("tau"), configuration.iterations());
        return new RunNoise(
                run,
                configuration.text("method"),
                step,
                configuration.schedule("alpha").at(last),
                rows);
    }

    private static List<Integer> clients(Request what, Problem problem) {
        for (int k : what.clients()) {
            if (k < 0 || k >= problem.clients()) {
                throw new ConfigurationException(
                        "there is no client %d; they are 0 to %d".formatted(k, problem.clients() - 1));
            }
        }
        return what.clients().isEmpty()
                ? IntStream.range(0, problem.clients()).boxed().toList()
                : what.clients();
    }

    private static TrackerErrors sample(Problem problem, int k, long seed, Point w, Point before, int samples)
            throws Exception {
        Client client = problem.client(k);
        int d = problem.innerDimension();
        Floats here = Floats.zeros(d);
        Floats there = Floats.zeros(d);
        Jacobian unused = jacobian(problem.layout(), d);
        Jacobian unusedToo = jacobian(problem.layout(), d);
        var at = new double[samples][d];
        var atBefore = new double[samples][d];
        for (int i = 0; i < samples; i++) {
            var xi = new Sample(seed, k, Sample.Stream.INNER, FIRST_DRAW + i);
            client.innerAtTwo(xi, w, here, unused, before, there, unusedToo);
            for (int j = 0; j < d; j++) {
                at[i][j] = here.get(j);
                atBefore[i][j] = there.get(j);
            }
        }
        return new TrackerErrors(at, atBefore);
    }

    private static Jacobian jacobian(Layout layout, int d) {
        return new Jacobian(IntStream.range(0, d)
                .mapToObj(i -> new Point(layout, Floats.zeros(layout.length())))
                .toList());
    }

    /** The model, the momentum and the trackers of a checkpoint, which a run writes when all clients have the same. */
    private static final class State {
        private final Layout layout;
        private final Point w;
        private final Floats m;
        private final float[] u;
        private final long[] clients;

        State(SafetensorsFile file) throws IOException {
            layout = RunMomentum.layout(file);
            w = new Point(layout, first(file, "W"));
            m = first(file, "M");
            u = file.floats("u");
            clients = file.longs("clients");
        }

        private Floats first(SafetensorsFile file, String name) throws IOException {
            Floats values = Floats.zeros(layout.length());
            file.read(name, 0, values.segment());
            return values;
        }

        /** Returns the distance of a client's tracker from the mean of g; empty if the client has never taken part. */
        OptionalDouble tracker(int k, TrackerErrors errors) {
            double[] mean = errors.mean();
            for (int row = 0; row < clients.length; row++) {
                if (clients[row] == k) {
                    double squares = 0;
                    for (int j = 0; j < mean.length; j++) {
                        double distance = u[row * mean.length + j] - mean[j];
                        squares += distance * distance;
                    }
                    return OptionalDouble.of(Math.sqrt(squares));
                }
            }
            return OptionalDouble.empty();
        }

        /** Returns the model from which a step of this rate leads to the model of the checkpoint. */
        Point before(Muon muon, double eta) {
            var before = new Point(layout, Floats.zeros(layout.length()));
            try (Device device = Devices.open("cpu:0")) {
                for (int i = 0; i < layout.blocks().size(); i++) {
                    Block block = layout.blocks().get(i);
                    Floats direction = m.slice(layout.offset(i), block.size());
                    float[] step = block.update() == Block.Update.ORTHOGONAL
                            ? orthogonal(device, muon, block, direction)
                            : vector(muon, direction);
                    Floats from = w.block(i);
                    Floats to = before.block(i);
                    for (int j = 0; j < step.length; j++) {
                        to.set(j, from.get(j) + eta * step[j]);
                    }
                }
            }
            return before;
        }

        private static float[] orthogonal(Device device, Muon muon, Block block, Floats direction) {
            long size = block.size();
            try (Orthogonalizer.Plan plan = muon.orthogonalizer()
                            .plan(device, 1, block.rows(), block.cols(), ElementType.FLOAT32, muon.scale());
                    Buffer from = device.allocate("M", ElementType.FLOAT32, size);
                    Buffer to = device.allocate("O", ElementType.FLOAT32, size)) {
                from.copyIn(0, direction.toArray());
                plan.orthogonalize(from.batch(1, size), to.batch(1, size));
                return to.toFloats(0, Math.toIntExact(size));
            }
        }

        private static float[] vector(Muon muon, Floats direction) {
            float[] step = direction.toArray();
            double squares = 0;
            for (float element : step) {
                squares += (double) element * element;
            }
            double factor = muon.vectorRate();
            if (muon.vectorRule() == Device.StepRule.NORMALIZED && squares > 0) {
                factor /= Math.sqrt(squares);
            }
            for (int i = 0; i < step.length; i++) {
                step[i] *= (float) factor;
            }
            return step;
        }
    }
}
