package org.fedcomuon.dashboard;

import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.federation.Start;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;

/**
 * What a run has reported so far, in bounded memory however long it is. Thread-safe; a run waits here at most for a
 * copy, never for JSON or a browser.
 */
final class History {
    /** Points of a curve: more than a screen has columns. */
    static final int MOST_POINTS = 2048;
    /** The number of faults and warnings that are shown, the newest ones. */
    static final int MOST_LINES = 50;

    /** Far more than a sentence, less than a page. */
    private static final int LONGEST_REASON = 1000;

    private static final double NANO = 1e-9;

    /** Consecutive rounds: the mean of their mean losses, and the least and the greatest loss of a client. */
    record Rounds(long step, long count, double mean, double least, double greatest) {
        static Rounds of(Round round) {
            double least = Double.NaN;
            double greatest = Double.NaN;
            for (double loss : round.clientLosses()) {
                if (!Double.isNaN(loss)) {
                    least = loss < least || Double.isNaN(least) ? loss : least;
                    greatest = loss > greatest || Double.isNaN(greatest) ? loss : greatest;
                }
            }
            return new Rounds(round.step(), 1, round.meanLoss(), least, greatest);
        }

        static Rounds merge(Rounds a, Rounds b) {
            if (Double.isNaN(a.mean) || Double.isNaN(b.mean)) {
                Rounds told = Double.isNaN(a.mean) ? b : a;
                return new Rounds(b.step, told.count, told.mean, told.least, told.greatest);
            }
            long count = a.count + b.count;
            return new Rounds(
                    b.step,
                    count,
                    a.mean + (b.mean - a.mean) * b.count / count,
                    Math.min(a.least, b.least),
                    Math.max(a.greatest, b.greatest));
        }

        List<Object> json() {
            return List.of(step, mean, least, greatest);
        }
    }

    record Evaluated(long step, Map<String, Double> metrics) {
        Evaluated {
            metrics = Collections.unmodifiableMap(new LinkedHashMap<>(metrics)); // in the evaluator's order
        }

        List<Object> json() {
            return List.of(step, metrics);
        }
    }

    /**
     * What is to be sent, as immutable values for JSON.
     *
     * @param whole everything from the first step on; present if it was asked for, or if there is no {@code more}
     * @param more what is new since the last frame; empty if earlier points have changed
     */
    record Frame(Optional<Map<String, Object>> whole, Optional<Map<String, Object>> more) {}

    /** What the charts show, from the first step on. */
    record Courses(
            long step,
            List<Rounds> rounds,
            List<Evaluated> evaluations,
            List<ClientLosses.Column> columns,
            ClientLosses.Last losses) {}

    private final String title;
    private final Map<String, String> facts;
    private final long promised;
    private Optional<Start> start = Optional.empty();
    private State state = State.WAITING;
    private String reason = "";
    private long began;
    private long ended;
    private long from;
    private long step;
    private Optional<Round> round = Optional.empty();
    private Optional<Evaluated> evaluation = Optional.empty();
    private Optional<Map<String, Object>> checkpoint = Optional.empty();
    private final Pace pace = new Pace();
    private Thinned<Rounds> rounds = new Thinned<>(MOST_POINTS, Rounds::merge);
    private Thinned<Evaluated> evaluations = evaluations();
    private ClientLosses losses = new ClientLosses(0);
    private final ArrayDeque<Map<String, Object>> faults = new ArrayDeque<>();
    private long faultCount;
    private final ArrayDeque<String> warnings = new ArrayDeque<>();
    private boolean changed = true;
    private boolean anew = true;

    /**
     * The history of a run that has not begun.
     *
     * @param iterations the number of steps, if it is known in advance
     */
    History(String title, Map<String, String> facts, long iterations) {
        this.title = title;
        this.facts = facts;
        this.promised = iterations;
    }

    /** Keeps the first of each group, so that the evaluation of the first step stays. */
    private static Thinned<Evaluated> evaluations() {
        return new Thinned<>(MOST_POINTS, (a, b) -> a);
    }

    /** An evaluation of an earlier part of the run. */
    synchronized void addEarlier(long at, Map<String, Double> metrics) {
        add(new Evaluated(at, metrics));
        step = Math.max(step, at);
        from = step;
    }

    synchronized void start(Start begun) {
        if (start.isPresent()) { // another run
            forget();
        }
        List<Evaluated> earlier = evaluations.all();
        evaluations = evaluations();
        evaluation = Optional.empty();
        earlier.stream()
                .filter(one -> one.step() <= begun.step() && begun.step() > 0) // the rest is done again
                .forEach(this::add);
        start = Optional.of(begun);
        losses = new ClientLosses(begun.clients());
        begin(begun.step());
        anew = true;
    }

    private void begin(long at) {
        state = State.RUNNING;
        began = System.nanoTime();
        from = at;
        step = at;
        pace.begin(began, at);
        changed = true;
    }

    private void forget() {
        round = Optional.empty();
        checkpoint = Optional.empty();
        reason = "";
        rounds = new Thinned<>(MOST_POINTS, Rounds::merge);
        evaluations = evaluations();
        faults.clear();
        faultCount = 0;
        warnings.clear();
    }

    private void add(Evaluated value) {
        evaluation = Optional.of(value);
        evaluations.add(value);
        changed = true;
    }

    /** Engines that run in other processes report steps, but not the start. */
    private void beginIfNotStarted(long at) {
        if (state == State.WAITING) {
            begin(at);
        }
    }

    synchronized void step(long done) {
        beginIfNotStarted(done - 1);
        step = done;
        changed = true;
    }

    synchronized void round(Round done) {
        round = Optional.of(done);
        rounds.add(Rounds.of(done));
        losses.add(done.number(), done.step(), done.clients(), done.clientLosses());
        changed = true;
    }

    synchronized void evaluation(Evaluation done) {
        beginIfNotStarted(done.step());
        add(new Evaluated(done.step(), done.metrics()));
    }

    synchronized void fault(ClientFault fault) {
        faultCount++;
        faults.add(Map.of("client", fault.client(), "step", fault.step(), "reason", brief(fault.reason())));
        if (faults.size() > MOST_LINES) {
            faults.removeFirst();
        }
        changed = true;
    }

    synchronized void warning(String warning) {
        if (state.isEnd()) { // of another run, which is about to begin
            forget();
            start = Optional.empty();
            state = State.WAITING;
            anew = true;
        }
        warnings.add(brief(warning));
        if (warnings.size() > MOST_LINES) {
            warnings.removeFirst();
        }
        changed = true;
    }

    synchronized void checkpoint(long at, Path file) {
        // Only its name: not every reader of the page should know the directory.
        checkpoint = Optional.of(
                Map.of("step", at, "file", String.valueOf(file.getFileName()), "seconds", seconds(System.nanoTime())));
        changed = true;
    }

    synchronized void end(Result result) {
        end(result.stopped() ? State.STOPPED : State.DONE, "");
    }

    synchronized void fail(Throwable failure) {
        String message = Objects.requireNonNullElse(failure.getMessage(), failure.toString());
        end(State.FAILED, brief(message.lines().findFirst().orElse("")));
    }

    /** The run reports nothing more. */
    synchronized void leave() {
        boolean done = iterations() > 0 && step >= iterations();
        end(done ? State.DONE : State.GONE, "");
    }

    private void end(State how, String why) {
        if (!state.isEnd()) { // or the end is known already
            ended = System.nanoTime();
            state = how;
            reason = why;
            changed = true;
        }
    }

    private static String brief(String text) {
        return text.length() <= LONGEST_REASON ? text : text.substring(0, LONGEST_REASON) + " …";
    }

    private long iterations() {
        return start.map(Start::iterations).orElse(promised);
    }

    private double seconds(long now) {
        return state == State.WAITING || began == 0 ? 0 : ((state.isEnd() ? ended : now) - began) * NANO;
    }

    /** Whether something is new since the last {@link #take}. */
    synchronized boolean isChanged() {
        return changed;
    }

    /** Whether the time shown goes on. */
    synchronized boolean isRunning() {
        return state == State.RUNNING;
    }

    synchronized State state() {
        return state;
    }

    /** What the page is about: the title that it was given, or the name of the run. */
    synchronized String title() {
        return title.isEmpty() ? start.map(Start::name).orElse("") : title;
    }

    synchronized Map<String, Object> health() {
        return Map.of("state", state.word(), "step", step, "iterations", iterations());
    }

    synchronized Courses courses() {
        var evaluated = new ArrayList<>(evaluations.all());
        // The last one, which the sampled ones may not have.
        evaluation
                .filter(last -> evaluated.isEmpty() || evaluated.getLast().step() < last.step())
                .ifPresent(evaluated::add);
        return new Courses(step, withOpen(rounds), evaluated, withOpen(losses.columns()), losses.last());
    }

    private static <T> List<T> withOpen(Thinned<T> course) {
        var all = new ArrayList<>(course.all());
        course.open().ifPresent(all::add);
        return all;
    }

    /** Everything from the first step on. What is new stays new. */
    synchronized Map<String, Object> whole() {
        return whole(changing());
    }

    /** What is new since the last call; and the whole history if {@code all} is true. */
    synchronized Frame take(boolean all) {
        Map<String, Object> changing = changing();
        var more = anew ? Optional.<Map<String, Object>>empty() : more(changing);
        var whole = all || more.isEmpty() ? Optional.of(whole(changing)) : Optional.<Map<String, Object>>empty();
        rounds.take();
        evaluations.take();
        losses.columns().take();
        anew = false;
        changed = false;
        return new Frame(whole, more);
    }

    private Map<String, Object> whole(Map<String, Object> changing) {
        var whole = new LinkedHashMap<>(changing);
        whole.put("about", about());
        whole.put("rounds", json(rounds.all(), rounds.open(), Rounds::json));
        whole.put("evaluations", json(evaluations.all(), evaluations.open(), Evaluated::json));
        Thinned<ClientLosses.Column> columns = losses.columns();
        whole.put("columns", json(columns.all(), columns.open(), ClientLosses.Column::json));
        return whole;
    }

    /** Empty if a curve has been thinned, because points that were sent before have changed. */
    private Optional<Map<String, Object>> more(Map<String, Object> changing) {
        Thinned<ClientLosses.Column> columns = losses.columns();
        return rounds.fresh()
                .flatMap(newRounds -> evaluations
                        .fresh()
                        .flatMap(newEvaluations -> columns.fresh().map(newColumns -> {
                            var more = new LinkedHashMap<>(changing);
                            more.put("rounds", json(newRounds, rounds.open(), Rounds::json));
                            more.put("evaluations", json(newEvaluations, evaluations.open(), Evaluated::json));
                            more.put("columns", json(newColumns, columns.open(), ClientLosses.Column::json));
                            return more;
                        })));
    }

    private static <T> Map<String, Object> json(List<T> points, Optional<T> open, Function<T, List<Object>> form) {
        var json = new LinkedHashMap<String, Object>();
        json.put("points", points.stream().map(form).toList());
        open.ifPresent(one -> json.put("open", form.apply(one)));
        return json;
    }

    private Map<String, Object> about() {
        var about = new LinkedHashMap<String, Object>();
        about.put("title", title());
        about.put("facts", facts);
        start.ifPresent(begun -> {
            about.put("method", begun.method());
            about.put("parameters", begun.parameters());
            about.put("clients", begun.clients());
            about.put("tau", begun.tau());
            about.put("seed", begun.seed());
            var devices = new ArrayList<Map<String, Object>>();
            for (int i = 0; i < begun.placement().size(); i++) {
                devices.add(Map.of(
                        "name",
                        deviceName(begun, i),
                        "clients",
                        begun.placement().get(i)));
            }
            about.put("devices", devices);
        });
        return about;
    }

    /** In a cluster the clients are placed on members, and this process knows only its own device. */
    private static String deviceName(Start begun, int i) {
        return begun.devices().size() == begun.placement().size()
                ? begun.devices().get(i)
                : "member " + i;
    }

    private Map<String, Object> changing() {
        long now = System.nanoTime();
        var json = new LinkedHashMap<String, Object>();
        json.put("state", state.word());
        json.put("label", state.label());
        json.put("reason", reason);
        json.put("from", from);
        json.put("step", step);
        json.put("iterations", iterations());
        json.put("seconds", seconds(now));
        long participants = round.map(done -> (long) done.participants())
                .orElse(start.map(begun -> (long) begun.clients()).orElse(0L));
        if (state == State.RUNNING) {
            pace.see(now, step);
            double rate = pace.now(now, step);
            double steady = pace.steady(now, step);
            json.put("rate", rate);
            json.put("clientRate", rate * participants);
            json.put("left", steady > 0 ? (iterations() - step) / steady : Double.NaN);
        } else if (state.isEnd() && seconds(now) > 0) {
            json.put("rate", (step - from) / seconds(now));
            json.put("clientRate", (step - from) / seconds(now) * participants);
        }
        round.ifPresent(done -> {
            json.put("round", done.number() + 1);
            json.put("participants", done.participants());
            json.put("dropped", done.dropped());
            json.put("bytes", done.communicatedBytes());
            json.put("roundTrips", done.roundTrips());
            json.put(
                    "devices",
                    done.deviceSeconds().stream().map(History::shares).toList());
        });
        json.put("losses", losses.json());
        evaluation.ifPresent(done -> json.put("evaluation", done.json()));
        checkpoint.ifPresent(file -> json.put("checkpoint", file));
        json.put("faultCount", faultCount);
        json.put("faults", List.copyOf(faults));
        json.put("warnings", List.copyOf(warnings));
        return json;
    }

    /** Seconds of each phase, and of the rest of the steps. */
    private static Map<String, Double> shares(Map<Clients.Phase, Double> seconds) {
        double gradient = seconds.getOrDefault(Clients.Phase.GRADIENT, 0.0);
        double orthogonalize = seconds.getOrDefault(Clients.Phase.ORTHOGONALIZE, 0.0);
        double exchange = seconds.getOrDefault(Clients.Phase.EXCHANGE, 0.0);
        double steps = seconds.getOrDefault(Clients.Phase.STEP, 0.0);
        return Map.of(
                "gradient", gradient,
                "orthogonalize", orthogonalize,
                "exchange", exchange,
                "other", Math.max(0, steps - gradient - orthogonalize - exchange));
    }
}
