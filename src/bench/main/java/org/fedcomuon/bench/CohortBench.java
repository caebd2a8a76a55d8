package org.fedcomuon.bench;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Round;
import org.fedcomuon.method.ClientStore;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;

/**
 * Measures whether rounds of a cohort of a hundred cost the same however many clients there are: each number of clients
 * in a process of its own, whose memory nothing else has touched.
 */
public final class CohortBench {
    private static final List<Integer> CLIENTS = List.of(1_000, 10_000, 100_000, 1_000_000);
    private static final int COHORT = 100;
    private static final int ROWS = 120;
    private static final int COLS = 256;
    private static final int TAU = 5;
    /** Rounds that are not measured: the JVM compiles, and memory is touched for the first time. */
    private static final int WARM_UP = 15;

    /** The number of measured rounds of the default benchmark. */
    public static final int ROUNDS = 45;

    private static final String ANSWER = "cohort: ";
    private static final double MEBI = 1 << 20;
    private static final String MEMORY = "memory";

    /** Flat within a tenth; memory is what is resident beyond the private state of all clients. */
    static final Aims AIMS = Aims.NONE
            .with("K = 10000+: .*", Aim.atLeast(0.9))
            .with("K = 10000+: .*", Aim.atMost(1.1).of(MEMORY));

    /** What a process has measured: rounds, and the bytes that are resident and of these in mapped files. */
    private record Measured(Timing timing, double resident, double mapped) {}

    private CohortBench() {}

    /** Measures all numbers of clients. */
    public static BenchReport run(int rounds, TurnListener listener) {
        var rows = new ArrayList<BenchReport.Row>();
        var answers = new ArrayList<Measured>();
        for (int i = 0; i < CLIENTS.size(); i++) {
            int clients = CLIENTS.get(i);
            listener.onTurn("a cohort of %d of %d clients".formatted(COHORT, clients), i, CLIENTS.size());
            answers.add(child(clients, rounds));
            rows.add(row(clients, answers.getLast(), answers.getFirst()));
        }
        listener.onTurn("cohorts", CLIENTS.size(), CLIENTS.size());
        return new BenchReport(
                "cohorts",
                "cpu:0",
                "A round of FedCoMuon with %d of K clients, tau = %d, a matrix of %d x %d; ratio = speed relative to K = %d."
                        .formatted(COHORT, TAU, ROWS, COLS, CLIENTS.getFirst()),
                List.copyOf(rows),
                List.of());
    }

    private static BenchReport.Row row(int clients, Measured measured, Measured first) {
        Figure speed = Figure.ratio(first.timing(), measured.timing());
        double memory = beyondState(clients, measured) / beyondState(CLIENTS.getFirst(), first);
        return new BenchReport.Row(
                        String.format(
                                Locale.ROOT,
                                "K = %d: %.1f MiB resident, of which %.1f MiB mapped files; private state of %.1f MiB when"
                                        + " all clients have taken part",
                                clients,
                                measured.resident() / MEBI,
                                measured.mapped() / MEBI,
                                state(clients) / MEBI),
                        measured.timing().median(),
                        measured.timing().spread(),
                        0,
                        speed.median())
                .judged(AIMS, Map.of(Aim.RATIO, speed, MEMORY, Figure.exactly(memory)));
    }

    private static double beyondState(int clients, Measured measured) {
        return measured.resident() - state(clients);
    }

    private static double state(int clients) {
        return (double) clients * ClientStore.recordBytes(1);
    }

    private static Measured child(int clients, int rounds) {
        List<String> command = ChildJvm.command(
                List.of("-XX:+UseSerialGC", "-Xmx256m"),
                CohortBench.class.getName(),
                List.of(Integer.toString(clients), Integer.toString(rounds)));
        double[] answer = Arrays.stream(ChildJvm.answer(command, ANSWER, "a process with %d clients".formatted(clients))
                        .split(" "))
                .mapToDouble(Double::parseDouble)
                .toArray();
        return new Measured(Timing.of(Arrays.copyOfRange(answer, 2, answer.length)), answer[0], answer[1]);
    }

    /** Runs the rounds and prints the bytes that are resident, those of mapped files, and the seconds of each round. */
    public static void main(String[] args) throws InterruptedException, IOException {
        int clients = Integer.parseInt(args[0]);
        int rounds = Integer.parseInt(args[1]);
        var ends = new double[WARM_UP + rounds];
        Schedule rate = Schedule.constant(0.01);
        var federation = Federation.of(
                        new ScaleProblem(ROWS, COLS, clients, 1), new FedCoMuon(rate, rate, rate, Muon.standard()))
                .cohort(COHORT)
                .tau(TAU)
                .iterations((long) TAU * ends.length)
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        ends[(int) round.number()] = round.seconds();
                        if (round.number() == ends.length - 1) { // while all is still there
                            System.gc();
                            System.out.println(ANSWER + resident() + each(ends));
                        }
                    }
                })
                .build();
        federation.run();
    }

    private static String each(double[] ends) {
        return IntStream.range(WARM_UP, ends.length)
                .mapToObj(i -> " " + (ends[i] - ends[i - 1]))
                .collect(joining());
    }

    private static String resident() {
        try {
            double all = 0;
            double mapped = 0;
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                double bytes = line.startsWith("Rss") || line.startsWith("VmRSS")
                        ? 1024 * Double.parseDouble(line.replaceAll("\\D", ""))
                        : 0;
                all += line.startsWith("VmRSS:") ? bytes : 0;
                mapped += line.startsWith("RssFile:") || line.startsWith("RssShmem:") ? bytes : 0;
            }
            return all + " " + mapped;
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
