package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.problem.Problem;
import org.jspecify.annotations.Nullable;

/** All clients of a problem on one device, driven by hand, with a server that averages in double. */
final class Rig implements AutoCloseable {
    static final long SEED = 3;

    final Device device;
    final Clients clients;
    final Method.Replica replica;
    final List<ClientFault> faults = new ArrayList<>();
    /** One entry a round trip: what was averaged. */
    final List<List<String>> trips = new ArrayList<>();
    /** Bytes up and down of those round trips that said so. */
    final List<List<Long>> bytes = new ArrayList<>();

    private final double[] weights;
    private final Method.Server server = new InDouble();
    private final int tau;
    private final long iterations;

    private Rig(Builder how) {
        tau = how.tau;
        iterations = how.iterations;
        List<Integer> numbers = how.numbers.isEmpty()
                ? IntStream.range(0, how.problem.clients()).boxed().toList()
                : how.numbers;
        int count = numbers.size();
        weights = how.weights == null ? equal(count) : how.weights;
        device = Devices.open(how.device, 2, InstructionSet.AUTO);
        clients = new Clients(device, how.problem, numbers, SEED, how.policy, faults::add, how.workers);
        replica = how.method.on(clients);
        var start = new float[Math.toIntExact(clients.n())];
        for (int e = 0; e < start.length; e++) {
            start[e] = (float) how.start[e];
        }
        for (int k = 0; k < count; k++) {
            clients.weights().buffer().copyIn(k * clients.n(), start);
        }
    }

    static double[] equal(int clients) {
        var weights = new double[clients];
        Arrays.fill(weights, 1);
        return weights;
    }

    static Builder of(Testbed bed, Method method) {
        return new Builder(bed.problem(), bed.start(), method);
    }

    /** What a test may choose. */
    static final class Builder {
        private final double[] start;
        private final Method method;
        private Problem problem;
        private double @Nullable [] weights;
        private int tau = 5;
        private long iterations = 50;
        private int workers = 1;
        private String device = "cpu:0";
        private List<Integer> numbers = List.of();
        private ClientFault.Policy policy = ClientFault.Policy.FAIL;

        private Builder(Problem problem, double[] start, Method method) {
            this.problem = problem;
            this.start = start;
            this.method = method;
        }

        Builder problem(Problem other) {
            problem = other;
            return this;
        }

        Builder tau(int steps) {
            tau = steps;
            return this;
        }

        Builder iterations(long steps) {
            iterations = steps;
            return this;
        }

        Builder workers(int threads) {
            workers = threads;
            return this;
        }

        Builder device(String name) {
            device = name;
            return this;
        }

        Builder policy(ClientFault.Policy other) {
            policy = other;
            return this;
        }

        Builder weights(double... ofClients) {
            weights = ofClients;
            return this;
        }

        Builder placed(Integer... clientNumbers) {
            numbers = List.of(clientNumbers);
            return this;
        }

        Rig open() {
            return new Rig(this);
        }
    }

    Method.Step at(long t) {
        return new Method.Step(t, tau, iterations);
    }

    void initialize() {
        replica.initialize(server);
    }

    void step(long t) {
        clients.enter(t);
        replica.step(at(t), server);
    }

    /** Initialises and takes all steps. */
    Rig run() {
        initialize();
        for (long t = 0; t < iterations; t++) {
            step(t);
        }
        return this;
    }

    Variable variable(String name) {
        return clients.state().stream()
                .filter(variable -> variable.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    float[] floats(String name, int client) {
        Variable variable = variable(name);
        return variable.buffer().toFloats(client * variable.length(), Math.toIntExact(variable.length()));
    }

    /** Every state variable of a client: what is shared as well. */
    Map<String, float[]> floats(int client) {
        var all = new LinkedHashMap<String, float[]>();
        for (Variable variable : clients.state()) {
            all.put(variable.name(), floats(variable.name(), variable.isShared() ? 0 : client));
        }
        return all;
    }

    double[][] doubles(Variable variable) {
        int rows = variable.isShared() ? 1 : clients.count();
        var values = new double[rows][];
        for (int k = 0; k < rows; k++) {
            values[k] = variable.buffer().toDoubles(k * variable.length(), Math.toIntExact(variable.length()));
        }
        return values;
    }

    double[][] doubles(String name) {
        return doubles(variable(name));
    }

    @Override
    public void close() {
        clients.close();
        assertThat(device.liveBytes()).isZero();
        device.close();
    }

    private final class InDouble implements Method.Server {
        @Override
        public void average(Variable... variables) {
            trips.add(Stream.of(variables).map(Variable::name).toList());
            for (Variable variable : variables) {
                average(variable);
            }
        }

        @Override
        public void average(long up, long down, Variable... variables) {
            bytes.add(List.of(up, down));
            average(variables);
        }

        private void average(Variable variable) {
            assertThat(variable.isShared()).as(variable.name()).isFalse();
            double[][] values = doubles(variable);
            var sum = new double[values[0].length];
            double total = 0;
            for (int k = 0; k < values.length; k++) {
                if (clients.takesPart(k)) {
                    total += weights[k];
                    for (int e = 0; e < sum.length; e++) {
                        sum[e] += weights[k] * values[k][e];
                    }
                }
            }
            var mean = new float[sum.length];
            for (int e = 0; e < sum.length; e++) {
                mean[e] = (float) (sum[e] / total);
            }
            for (int k = 0; k < values.length; k++) {
                variable.buffer().copyIn(k * variable.length(), mean);
            }
        }

        @Override
        public double share() {
            double some = 0;
            double all = 0;
            for (int k = 0; k < weights.length; k++) {
                some += clients.takesPart(k) ? weights[k] : 0;
                all += weights[k];
            }
            return some / all;
        }
    }
}
