package org.fedcomuon.method;

import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.jspecify.annotations.Nullable;

/**
 * The oracles of the clients on one device. Brings to them what they read, evaluates them on worker threads or, where
 * the problem has an oracle of several clients, all in one call on the device thread, takes away what they wrote, and
 * refuses results that are not finite. {@link Clients} documents what each evaluation computes.
 */
final class Oracles implements AutoCloseable {
    private final Clients clients;
    private final Device device;
    private final int d;
    private final Sampling sampling;
    private final ClientFault.Policy policy;
    private final Consumer<ClientFault> onFault;
    private final Problem problem;
    private final Workers workers;
    private final Workers.Pace innerPace = new Workers.Pace();
    private final Workers.Pace outerPace = new Workers.Pace();
    private List<Client> oracles = List.of();
    private Map<Integer, Client> byNumber = Map.of();
    private Optional<JointOracle> joint = Optional.empty(); // instead of those, for g and its derivatives
    private boolean onDevice; // whether it computes in the device's memory
    private final double[] lossSums;
    private final int[] lossCounts;
    private final Set<Variable> results = new HashSet<>(); // of oracles, where the device looks for NaN
    private @Nullable Variable lossesOnDevice; // what is not in lossSums yet, because g is not on the host
    private boolean lossesFetched = true;
    private @Nullable Variable plainJacobian;
    private @Nullable Variable plainValue;
    private @Nullable Variable plainOuter;

    Oracles(
            Clients clients,
            Problem problem,
            Sampling sampling,
            ClientFault.Policy policy,
            Consumer<ClientFault> onFault,
            int workerCount) {
        this.clients = clients;
        this.device = clients.device();
        this.d = problem.innerDimension();
        this.sampling = sampling;
        this.policy = policy;
        this.onFault = onFault;
        this.problem = problem;
        int capacity = clients.capacity();
        lossSums = new double[capacity];
        lossCounts = new int[capacity];
        workers = new Workers(device.name(), Math.min(workerCount, capacity));
    }

    /** Other clients are here from now on. Those that were here already are not asked for again. */
    void seat(List<Integer> numbers) {
        var before = byNumber;
        var now = new LinkedHashMap<Integer, Client>();
        for (int number : numbers) {
            Client known = before.get(number);
            now.put(number, known != null ? known : problem.client(number));
        }
        byNumber = now;
        oracles = List.copyOf(now.values());
        before.forEach((number, client) -> leave(now, number, client));
        joint = numbers.isEmpty() ? Optional.empty() : problem.joint(device, numbers);
        onDevice = joint.map(JointOracle::computesOnDevice).orElse(false);
        forgetLosses();
    }

    private static void leave(Map<Integer, Client> now, int number, Client client) {
        if (!now.containsKey(number) && client instanceof AutoCloseable resource) {
            try {
                resource.close();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new IllegalStateException("client %d cannot be closed: %s".formatted(number, e.getMessage()), e);
            }
        }
    }

    void inner(Variable w, Variable value, Variable jacobian) {
        Sample[] xi = sampleInner();
        evaluate(
                Views.ofPoints(w),
                new Views(List.of(jacobian), List.of(value)),
                k -> oracles.get(k).inner(xi[k], w.point(k), value.values(k), jacobian.jacobian(k)),
                (oracle, run) -> oracle.inner(
                        of(xi, run), point(w, run), value.values(run, onDevice), jacobian.points(run, onDevice)));
        requireFiniteInner(List.of(jacobian), List.of(value));
        addLoss(value);
    }

    void innerAtTwo(
            Variable w, Variable value, Variable jacobian, Variable wOld, Variable valueOld, Variable jacobianOld) {
        Sample[] xi = sampleInner();
        evaluate(
                Views.ofPoints(w, wOld),
                new Views(List.of(jacobian, jacobianOld), List.of(value, valueOld)),
                k -> oracles.get(k)
                        .innerAtTwo(
                                xi[k],
                                w.point(k),
                                value.values(k),
                                jacobian.jacobian(k),
                                wOld.point(k),
                                valueOld.values(k),
                                jacobianOld.jacobian(k)),
                (oracle, run) -> {
                    oracle.inner(
                            of(xi, run), point(w, run), value.values(run, onDevice), jacobian.points(run, onDevice));
                    oracle.inner(
                            of(xi, run),
                            point(wOld, run),
                            valueOld.values(run, onDevice),
                            jacobianOld.points(run, onDevice));
                });
        requireFiniteInner(List.of(jacobian, jacobianOld), List.of(value, valueOld));
        addLoss(value);
    }

    void outerGradient(Variable y, Variable gradient) {
        evaluate(
                Views.ofValues(y),
                Views.ofValues(gradient),
                k -> oracles.get(k).outerGradient(sampling.outer(k), y.values(k), gradient.values(k)));
        requireFiniteValues(gradient);
    }

    void outerGradientAtTwo(Variable y, Variable gradient, Variable yOld, Variable gradientOld) {
        evaluate(Views.ofValues(y, yOld), Views.ofValues(gradient, gradientOld), k -> {
            Sample zeta = sampling.outer(k);
            oracles.get(k).outerGradient(zeta, y.values(k), gradient.values(k));
            oracles.get(k).outerGradient(zeta, yOld.values(k), gradientOld.values(k));
        });
        requireFiniteValues(gradient);
        requireFiniteValues(gradientOld);
    }

    void gradient(Variable w, Variable gradient) {
        if (d == 1) {
            if (plainValue == null) {
                plainValue = clients.scratch("loss", d);
            }
            inner(w, plainValue, gradient);
            return;
        }
        Sampled at = sample(w);
        outerGradient(at.value, at.outer);
        gradient.compose(1, at.jacobian, at.outer);
    }

    void loss(Variable w, Variable loss, Variable gradient) {
        if (d == 1) {
            inner(w, loss, gradient);
            return;
        }
        Sampled at = sample(w);
        evaluate(Views.ofValues(at.value), Views.ofValues(at.outer, loss), k -> {
            Sample zeta = sampling.outer(k);
            oracles.get(k).outerGradient(zeta, at.value.values(k), at.outer.values(k));
            loss.values(k)
                    .set(
                            0,
                            oracles.get(k)
                                    .outerValue(zeta, at.value.values(k))
                                    .orElseThrow(() -> new UnsupportedOperationException(
                                            "the method compares clients by f, whose value this client does not say")));
        });
        requireFiniteValues(at.outer);
        requireFiniteValues(loss);
        gradient.compose(1, at.jacobian, at.outer);
    }

    /** What single-level methods need of a sample if d > 1: g, its Jacobian, and the gradient of f there. */
    private record Sampled(Variable value, Variable jacobian, Variable outer) {}

    private Sampled sample(Variable w) {
        if (plainValue == null || plainJacobian == null || plainOuter == null) {
            plainValue = clients.scratch("g", d);
            plainJacobian = clients.scratch("Jacobian", d * clients.n());
            plainOuter = clients.scratch("grad f", d);
        }
        inner(w, plainValue, plainJacobian);
        return new Sampled(plainValue, plainJacobian, plainOuter);
    }

    void hessianProduct(Variable w, Variable direction, Variable product) {
        Sample[] xi = sampleInner();
        evaluate(
                Views.ofPoints(w, direction),
                Views.ofPoints(product),
                k -> ((HessianProduct) oracles.get(k))
                        .hessianProduct(xi[k], w.point(k), direction.point(k), product.point(k)),
                (oracle, run) ->
                        oracle.hessianProduct(of(xi, run), point(w, run), point(direction, run), point(product, run)));
        requireFiniteInner(List.of(product), List.of());
    }

    /** Draws a sample of g for each client that takes part; the others have none. */
    private Sample[] sampleInner() {
        var xi = new Sample[clients.count()];
        active().forEach(k -> xi[k] = sampling.inner(k));
        return xi;
    }

    private static List<Sample> of(Sample[] xi, Run run) {
        return Arrays.asList(xi).subList(run.first(), run.first() + run.count());
    }

    private Points point(Variable w, Run run) {
        return w.points(run, onDevice).getFirst();
    }

    private void addLoss(Variable value) {
        if (d > 1) {
            return; // components of g are no losses
        }
        if (onDevice) {
            if (lossesOnDevice == null) {
                lossesOnDevice = clients.scratch("losses", 1);
            }
            lossesOnDevice.add(1, value); // nobody waits for them before somebody asks
            lossesFetched = false;
        }
        active().forEach(k -> {
            lossSums[k] += onDevice ? 0 : value.values(k).get(0);
            lossCounts[k]++;
        });
    }

    double meanLoss(int k) {
        if (lossesOnDevice != null && !lossesFetched) {
            lossesOnDevice.fetch(new Run(0, clients.capacity()));
            clients.settle();
            lossesFetched = true;
            for (int each = 0; each < lossSums.length; each++) {
                lossSums[each] += lossesOnDevice.values(each).get(0);
            }
            lossesOnDevice.zero();
        }
        return lossSums[k] / lossCounts[k];
    }

    void forgetLosses() {
        if (lossesOnDevice != null) {
            lossesOnDevice.zero();
            lossesFetched = true;
        }
        Arrays.fill(lossSums, 0);
        Arrays.fill(lossCounts, 0);
    }

    boolean haveHessianProduct() {
        return oracles.stream().allMatch(HessianProduct.class::isInstance);
    }

    private interface Oracle {
        void call(int client) throws Exception;
    }

    /** A call of an oracle of several clients, for adjacent ones. */
    private interface JointCall {
        void on(JointOracle oracle, Run run) throws Exception;
    }

    /** An oracle's view of some variables: points and values. */
    private record Views(List<Variable> points, List<Variable> values) {
        static Views ofPoints(Variable... points) {
            return new Views(List.of(points), List.of());
        }

        static Views ofValues(Variable... values) {
            return new Views(List.of(), List.of(values));
        }

        void forEach(Consumer<Variable> action) {
            points.forEach(action);
            values.forEach(action);
        }
    }

    /** Evaluates clients one by one, or, if there is an oracle for it, those that are adjacent by one call. */
    private void evaluate(Views read, Views written, Oracle oracle, JointCall call) {
        joint.ifPresentOrElse(
                all -> evaluate(read, written, onDevice, () -> evaluate(all, call)),
                () -> evaluate(read, written, oracle));
    }

    private void evaluate(Views read, Views written, Oracle oracle) {
        // Who reads or writes points does work of their size; f is of a few values.
        Workers.Pace pace = read.points().isEmpty() && written.points().isEmpty() ? outerPace : innerPace;
        evaluate(read, written, false, () -> evaluate(oracle, pace));
    }

    /**
     * Everything that oracles read is brought to them, in one wait for all; what they write is taken away, in none. An
     * oracle that computes in place is on the stream of the device, so that there is nothing to bring or to wait for.
     */
    private void evaluate(Views read, Views written, boolean inPlace, Runnable work) {
        written.forEach(Variable::becomeDifferent);
        if (device.isHost() || inPlace) {
            clients.timed(Clients.Phase.GRADIENT, work);
            return;
        }
        clients.timed(Clients.Phase.GRADIENT, () -> {
            read.forEach(Variable::fetch);
            written.forEach(Variable::prepare);
            clients.settle(); // what was written before has been taken away as well
            work.run();
            written.forEach(Variable::store);
        });
    }

    /** Calls the oracle of all clients for each run of adjacent ones. */
    private void evaluate(JointOracle all, JointCall call) {
        for (Run run : clients.runs()) {
            Exception together = attempt(all, call, run);
            if (together != null) {
                blame(all, call, run, together);
            }
        }
    }

    private static @Nullable Exception attempt(JointOracle all, JointCall call, Run run) {
        try {
            call.on(all, run);
            return null;
        } catch (Exception e) {
            return e;
        }
    }

    /** Evaluates clients alone after they have failed together: those that fail again are at fault. */
    private void blame(JointOracle all, JointCall call, Run run, Exception together) {
        var thrown = new TreeMap<Integer, Exception>();
        for (int k = run.first(); k < run.first() + run.count(); k++) {
            Exception alone = run.count() == 1 ? together : attempt(all, call, new Run(k, 1));
            if (alone != null) {
                thrown.put(k, alone);
            }
        }
        if (thrown.isEmpty()) { // such as for want of memory
            throw new IllegalStateException(
                    "%d clients of %s failed together, but none of them alone: %s"
                            .formatted(run.count(), device.name(), together.getMessage()),
                    together);
        }
        thrown.forEach(this::threw);
    }

    private IntStream active() {
        return clients.runs().stream().flatMapToInt(run -> IntStream.range(run.first(), run.first() + run.count()));
    }

    private void evaluate(Oracle oracle, Workers.Pace pace) {
        int[] active = active().toArray();
        var thrown = new @Nullable Exception[active.length];
        workers.run(active.length, pace, i -> {
            try {
                oracle.call(active[i]);
            } catch (Exception e) {
                thrown[i] = e;
            }
        });
        for (int i = 0; i < active.length; i++) {
            Exception e = thrown[i];
            if (e != null) {
                threw(active[i], e);
            }
        }
    }

    private void threw(int k, Exception e) {
        tolerate(
                k,
                new ClientFaultException(
                        new ClientFault(clients.number(k), clients.step(), ClientFault.Kind.THREW, e.toString()), e));
    }

    /** Refuses results of g that are not finite; its values are on the host, unless the oracle computes in place. */
    private void requireFiniteInner(List<Variable> points, List<Variable> values) {
        if (onDevice) {
            values.forEach(this::requireFinitePoints);
        } else {
            values.forEach(this::requireFiniteValues);
        }
        points.forEach(this::requireFinitePoints);
    }

    /**
     * Refuses points that are not finite. They may be on a GPU, which is not waited for: it finds the fault before
     * anything is written from it, and the next wait throws it. Only if the client is to be dropped, it has to be known
     * at once.
     */
    private void requireFinitePoints(Variable result) {
        results.add(result);
        if (device.isHost() || drops()) {
            requireFiniteNow(result);
        } else {
            clients.runs().forEach(run -> device.requireFinite(result.of(run)));
        }
    }

    /** Refuses values that are not finite, on the host, where oracles have just written them. */
    private void requireFiniteValues(Variable result) {
        for (Run run : clients.runs()) { // a list that does not change when a client is dropped
            for (int k = run.first(); k < run.first() + run.count(); k++) {
                Floats values = result.values(k);
                for (long i = 0; i < values.length(); i++) {
                    if (!Double.isFinite(values.get(i))) {
                        tolerate(k, notFinite(result, k, i, clients.step()));
                        break;
                    }
                }
            }
        }
    }

    private void requireFiniteNow(Variable result) {
        for (boolean again = true; again; ) {
            again = false;
            for (Run run : clients.runs()) {
                Device.Position place = device.firstNotFinite(result.of(run)).orElse(null);
                if (place != null) {
                    int k = run.first() + (int) place.client();
                    tolerate(k, notFinite(result, k, place.index(), clients.step()));
                    again = true; // the runs have changed
                    break;
                }
            }
        }
    }

    /** Returns whether oracles have written a variable. */
    boolean haveWritten(Variable variable) {
        return results.contains(variable);
    }

    /** Returns what is thrown if the result of a client was not finite at a step. */
    ClientFaultException notFinite(Variable result, int k, long index, long step) {
        String reason = String.format(
                Locale.ROOT,
                "%s is not finite in %s, at a W as large as %.3g",
                result.name(),
                clients.place(result, index),
                largestWeight(k));
        return new ClientFaultException(
                new ClientFault(clients.number(k), step, ClientFault.Kind.NOT_FINITE, reason), null);
    }

    /** Tells a model that has run away from a client that is out of order. */
    private double largestWeight(int k) {
        clients.weights().fetch(new Run(k, 1));
        device.synchronize();
        Floats w = clients.weights().values(k);
        double largest = 0;
        for (long i = 0; i < w.length(); i++) {
            largest = Math.max(largest, Math.abs(w.get(i)));
        }
        return largest;
    }

    /** Returns whether a client with a fault is dropped, instead of failing the run. */
    private boolean drops() {
        return policy != ClientFault.Policy.FAIL && clients.step() >= 0;
    }

    private void tolerate(int k, ClientFaultException e) {
        if (!drops()) {
            throw e;
        }
        clients.drop(k);
        onFault.accept(e.fault());
    }

    @Override
    public void close() {
        workers.close();
        byNumber.forEach((number, client) -> leave(Map.of(), number, client));
    }
}
