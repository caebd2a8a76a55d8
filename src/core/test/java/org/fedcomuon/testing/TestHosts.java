package org.fedcomuon.testing;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Several hosts on this machine. Each has a network of its own with one address, and its own host name, processes,
 * home, {@code /tmp}, {@code /var/tmp} and {@code /dev/shm}. Of these directories it shares only what the test names,
 * and the project, its libraries and the JDK. A switch joins the hosts, and nothing leads out of it.
 *
 * <p>Each host, and the switch, is a process that waits for the end of its input in namespaces of its own. They have no
 * names, so nothing of them is left when the JVM of the test ends, however it ends.
 *
 * <p>Not thread-safe.
 */
public final class TestHosts implements AutoCloseable {
    static final String READY = "ready";
    private static final String NETWORK = "10.77.0.";
    private static final String SWITCH = "switch";
    private static final long PATIENCE_SECONDS = 30;

    /** How namespaces are made and entered. */
    private record Way(List<String> make, List<String> enter) {
        static final Way AS_ROOT = new Way(List.of(), List.of());

        /** A user is root in a namespace of users. */
        static final Way AS_USER =
                new Way(List.of("--user", "--map-root-user"), List.of("--user", "--preserve-credentials"));
    }

    /** Everything that hosts need of the kernel and of its tools. */
    private static final String TRIAL = """
            set -e
            hostname trial
            mount -t tmpfs none /tmp
            ip link add name switch type bridge
            ip link add name port1 type veth peer name eth0
            nsenter --version
            env --ignore-signal=CHLD true
            """;

    /** Of the ways, the first that works on this machine; or else the last words of the last. */
    private record Attempt(Optional<Way> way, String obstacle) {
        static Attempt make() throws InterruptedException {
            String said = "";
            for (Way way : List.of(Way.AS_ROOT, Way.AS_USER)) {
                var command = new ArrayList<>(List.of("unshare"));
                command.addAll(way.make);
                command.addAll(List.of(
                        "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"));
                command.addAll(List.of("sh", "-c", TRIAL));
                try {
                    Ended trial = Ended.of(new ProcessBuilder(command));
                    if (trial.status == 0) {
                        return new Attempt(Optional.of(way), "");
                    }
                    said = trial.said.strip().lines().reduce("", (_, last) -> last);
                } catch (IOException e) { // no such program
                    return new Attempt(Optional.empty(), String.valueOf(e.getMessage()));
                }
            }
            return new Attempt(Optional.empty(), said);
        }
    }

    /** A command that has ended. */
    private record Ended(int status, String said) {
        static Ended of(ProcessBuilder command) throws IOException, InterruptedException {
            Process process = command.redirectErrorStream(true).start();
            process.getOutputStream().close();
            String said = new String(process.getInputStream().readAllBytes(), UTF_8);
            return new Ended(process.waitFor(), said);
        }
    }

    private final Way way;
    private final Path directory;
    private final Process network;
    private final Map<String, Host> hosts = new LinkedHashMap<>();

    private TestHosts(Way way, Path directory) throws IOException {
        this.way = way;
        this.directory = directory;
        var command = new ArrayList<>(List.of("unshare"));
        command.addAll(way.make);
        command.addAll(List.of("--net", "--mount"));
        network = keeper(command, "ip link add name switch type bridge && ip link set switch up");
    }

    /** Skips the test where this machine allows no hosts, with the reason. */
    public static void assumePossible() throws InterruptedException {
        Attempt attempt = Attempt.make();
        assumeTrue(attempt.way.isPresent(), () -> "hosts of their own are not possible here: " + attempt.obstacle);
    }

    /**
     * Starts hosts, which know each other by name.
     *
     * @param directory for what is private to each
     * @param shared directories that all reach, at the path that they have outside
     */
    public static TestHosts start(Path directory, List<Path> shared, String... names) throws Exception {
        Attempt attempt = Attempt.make();
        Way way = attempt.way.orElseThrow(() -> new IllegalStateException(attempt.obstacle));
        Path root = Files.createDirectories(directory).toRealPath();
        var table = new StringBuilder("127.0.0.1 localhost\n");
        for (int i = 0; i < names.length; i++) {
            table.append("%s%d %s%n".formatted(NETWORK, i + 1, names[i]));
        }
        Files.writeString(root.resolve("hosts"), table);
        var hosts = new TestHosts(way, root);
        try {
            for (int i = 0; i < names.length; i++) {
                hosts.hosts.put(names[i], hosts.new Host(names[i], i + 1, shared));
            }
            return hosts;
        } catch (Exception | Error e) {
            hosts.close();
            throw e;
        }
    }

    public Host host(String name) {
        return Optional.ofNullable(hosts.get(name)).orElseThrow();
    }

    /**
     * Makes a program for the hosts that does what ssh does, as far as {@code mpirun} uses it: it runs a command on the
     * host of a name. Its requests are files, because no host sees the processes of another.
     *
     * @param directory that all hosts share
     */
    public Path remoteShell(Path directory) throws IOException {
        Path requests = Files.createDirectories(directory.resolve("requests"));
        Path program = directory.resolve("remote-shell");
        Files.writeString(program, """
                #!/bin/sh
                host=$1
                shift
                request=$(mktemp -d %s/XXXXXX)
                echo "$*" > "$request/command"
                echo "$host" > "$request/new"
                mv "$request/new" "$request/host"
                until [ -e "$request/status" ]; do sleep 0.05; done
                cat "$request/said"
                exit "$(cat "$request/status")"
                """.formatted(quoted(requests)));
        Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwx------"));
        Thread.ofPlatform().daemon().start(() -> {
            var served = new HashMap<Path, Process>();
            try {
                while (network.isAlive()) {
                    serve(requests, served);
                    Thread.sleep(20);
                }
            } catch (IOException | InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        return program;
    }

    private void serve(Path requests, Map<Path, Process> served) throws IOException {
        List<Path> all;
        try (Stream<Path> files = Files.list(requests)) {
            all = files.toList();
        }
        for (Path request : all) {
            Path host = request.resolve("host");
            if (!served.containsKey(request) && Files.exists(host)) {
                List<String> command = List.of("sh", "-c", Files.readString(request.resolve("command")));
                served.put(
                        request,
                        host(Files.readString(host).strip()).start(request.resolve("said"), Map.of(), command));
            }
        }
        for (Map.Entry<Path, Process> each : served.entrySet()) {
            Path status = each.getKey().resolve("status");
            if (!each.getValue().isAlive() && !Files.exists(status)) {
                Path code = Files.writeString(
                        each.getKey().resolve("code"),
                        Integer.toString(each.getValue().exitValue()));
                Files.move(code, status);
            }
        }
    }

    /** Ends everything that runs on the hosts, and the hosts. */
    @Override
    public void close() {
        hosts.values().forEach(Host::close);
        end(network);
    }

    /** Starts a process that makes namespaces, does something in them, and holds them until its input ends. */
    private static Process keeper(List<String> unshare, String script, String... arguments) throws IOException {
        var command = new ArrayList<>(unshare);
        // It becomes the parent of all whose own has died; that it ignores their end is enough for the kernel.
        command.addAll(List.of(
                "sh", "-c", "set -e%n%s%necho %s%nexec env --ignore-signal=CHLD cat".formatted(script, READY), "sh"));
        command.addAll(List.of(arguments));
        return awaitReady(command);
    }

    /** Starts a command that says when it is ready, and then waits for the end of its input. */
    private static Process awaitReady(List<String> command) throws IOException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        var said = new StringBuilder();
        BufferedReader reader = process.inputReader(UTF_8);
        String line = reader.readLine();
        while (line != null && !line.equals(READY)) {
            said.append(line).append('\n');
            line = reader.readLine();
        }
        if (line == null) {
            end(process);
            throw new IOException(said.toString());
        }
        return process;
    }

    private static void end(Process process) {
        List<ProcessHandle> all = Stream.concat(process.descendants(), Stream.of(process.toHandle()))
                .toList();
        all.forEach(ProcessHandle::destroyForcibly);
        all.forEach(each ->
                each.onExit().orTimeout(PATIENCE_SECONDS, TimeUnit.SECONDS).join());
    }

    /** Runs a command in the network of the switch. */
    private void onSwitch(String... command) throws IOException, InterruptedException {
        var all = new ArrayList<>(entering(network.pid(), "--net"));
        all.addAll(List.of(command));
        run(all);
    }

    private List<String> entering(long pid, String... namespaces) {
        var command = new ArrayList<>(List.of("nsenter", "--target", Long.toString(pid)));
        command.addAll(way.enter);
        command.addAll(List.of(namespaces));
        command.add("--");
        return command;
    }

    private static void run(List<String> command) throws IOException, InterruptedException {
        Ended ended = Ended.of(new ProcessBuilder(command));
        if (ended.status != 0) {
            throw new IOException("%s: exit code %d: %s".formatted(command, ended.status, ended.said));
        }
    }

    /** Stops processes, as a machine without time for them would; {@link #proceed} lets them go on. */
    public static void pause(Iterable<ProcessHandle> processes) throws IOException, InterruptedException {
        signal("-STOP", processes);
    }

    public static void proceed(Iterable<ProcessHandle> processes) throws IOException, InterruptedException {
        signal("-CONT", processes);
    }

    private static void signal(String signal, Iterable<ProcessHandle> processes)
            throws IOException, InterruptedException {
        var command = new ArrayList<>(List.of("kill", signal));
        processes.forEach(process -> command.add(Long.toString(process.pid())));
        run(command);
    }

    /** One of them. */
    public final class Host {
        private final int number;
        private final String port;
        private final Path home;
        private final Process keeper;
        private final long pid;
        private final List<Process> started = new CopyOnWriteArrayList<>();
        private Optional<Process> relay = Optional.empty();

        private Host(String name, int number, List<Path> shared) throws IOException, InterruptedException {
            this.number = number;
            port = "port" + number;
            home = Files.createDirectories(directory.resolve(name));
            var command = new ArrayList<>(entering(network.pid(), "--net"));
            command.addAll(List.of("unshare", "--net", "--mount", "--uts", "--ipc"));
            command.addAll(List.of("--pid", "--fork", "--kill-child", "--mount-proc"));
            keeper = keeper(command, mounts(shared), name);
            try {
                pid = keeper.children().findFirst().orElseThrow().pid();
                onSwitch("ip", "link", "add", "name", port, "type", "veth", "peer", "name", "eth0", "netns", "" + pid);
                inside("ip", "link", "set", "lo", "up");
                inside("ip", "address", "add", address() + "/24", "dev", "eth0");
                inside("ip", "link", "set", "eth0", "up");
                restore();
            } catch (IOException | RuntimeException | Error e) {
                end(keeper);
                throw e;
            }
        }

        /** What is private is bound over what is not, with what is shared of it bound into it before. */
        private String mounts(List<Path> shared) throws IOException {
            var before = new StringBuilder("hostname \"$1\"\nmount -t tmpfs none /dev/shm\n");
            before.append(mount(directory.resolve("hosts"), Path.of("/etc/hosts")));
            var after = new ArrayDeque<String>();
            for (Path masked : privateDirectories()) {
                Path instead = Files.createDirectories(privateDirectory(masked));
                for (Path each : everywhere(shared)) {
                    if (each.startsWith(masked)) {
                        String below = masked.relativize(each).toString();
                        before.append(mount(each, Files.createDirectories(instead.resolve(below))));
                    }
                }
                if (directory.startsWith(masked)) {
                    after.addLast(mount(instead, masked)); // hides what the others are bound from
                } else {
                    after.addFirst(mount(instead, masked));
                }
            }
            return before + String.join("", after);
        }

        /** Where a directory that is private to the host lies outside. */
        public Path privateDirectory(Path inside) {
            return home.resolve(inside.toString().substring(1).replace('/', '-'));
        }

        public String address() {
            return NETWORK + number;
        }

        /** Starts a command on this host, with all that it says in a file. */
        public Process start(Path log, Map<String, String> environment, List<String> command) throws IOException {
            var builder = new ProcessBuilder(commandInside(command))
                    .redirectErrorStream(true)
                    .redirectOutput(log.toFile());
            builder.environment().putAll(environment);
            Process process = builder.start();
            started.add(process);
            return process;
        }

        private void inside(String... command) throws IOException, InterruptedException {
            run(commandInside(List.of(command)));
        }

        private List<String> commandInside(List<String> command) {
            // The shell stays: nsenter itself, as a parent, would not let a process rest that a test has paused.
            var all = new ArrayList<>(entering(pid, "--net", "--mount", "--uts", "--ipc", "--pid", "--no-fork"));
            all.addAll(List.of("sh", "-c", "cd /tmp; \"$@\"; exit $?", "sh"));
            all.addAll(command);
            return all;
        }

        /** Cuts the link to the switch: the carrier is lost on both sides. */
        public void cut() throws IOException, InterruptedException {
            onSwitch("ip", "link", "set", port, "down");
        }

        /** Takes the link out of the switch: what is sent gets lost, and neither side is told. */
        public void isolate() throws IOException, InterruptedException {
            onSwitch("ip", "link", "set", port, "nomaster");
        }

        /**
         * Makes the link longer: whatever passes arrives later, in either direction, and some of it not at all.
         *
         * @param lost of all frames
         */
        public void slow(Duration delay, double lost) throws IOException, InterruptedException {
            assumeTrue(Files.isWritable(SlowLink.DEVICE), () -> SlowLink.DEVICE + " is not here, or not for us");
            String near = "near" + number;
            String far = "far" + number;
            String beyond = "beyond" + number; // a switch of its own, at the other end
            var command = new ArrayList<>(entering(network.pid(), "--net"));
            command.addAll(ChildJvm.command(
                    List.of("-XX:+UseSerialGC"),
                    SlowLink.class,
                    List.of(near, far, Long.toString(delay.toMillis()), Double.toString(lost))));
            relay = Optional.of(awaitReady(command));
            onSwitch("ip", "link", "add", "name", beyond, "type", "bridge");
            onSwitch("ip", "link", "set", beyond, "up");
            onSwitch("ip", "link", "set", near, "up", "master", SWITCH);
            onSwitch("ip", "link", "set", far, "up", "master", beyond);
            onSwitch("ip", "link", "set", port, "master", beyond);
        }

        /** Undoes {@link #cut}, {@link #isolate} and {@link #slow}. */
        public void restore() throws IOException, InterruptedException {
            onSwitch("ip", "link", "set", port, "up", "master", SWITCH);
            if (relay.isPresent()) {
                end(relay.get());
                relay = Optional.empty();
                onSwitch("ip", "link", "delete", "beyond" + number);
            }
        }

        /** Ends all TCP connections with other hosts, with a reset to the other side. */
        public void resetConnections() throws IOException, InterruptedException {
            reset("dst %s0/24 and not dst %s".formatted(NETWORK, address()));
        }

        /** Ends those TCP connections that were made to a port of another host. */
        public void resetConnections(int port) throws IOException, InterruptedException {
            reset("dport = :" + port);
        }

        private void reset(String connections) throws IOException, InterruptedException {
            inside("ss", "--kill", "--tcp", "state", "established", connections);
        }

        /** What runs on this host, with the numbers that processes have outside. */
        public List<ProcessHandle> processes() {
            // A daemon is a child of the first process of its namespace.
            return Stream.concat(started.stream().map(Process::toHandle), keeper.children())
                    .flatMap(ProcessHandle::descendants)
                    .toList();
        }

        /** Ends all that runs on this host. */
        public void killAll() {
            started.forEach(TestHosts::end);
            started.clear();
            processes().forEach(ProcessHandle::destroyForcibly);
        }

        private void close() {
            relay.ifPresent(TestHosts::end);
            end(keeper); // the first process of a namespace: the kernel ends all others
            killAll();
        }
    }

    /** What every host has to itself. */
    private Set<Path> privateDirectories() {
        var all = new LinkedHashSet<>(List.of(Path.of("/tmp"), Path.of("/var/tmp")));
        all.add(Path.of(System.getProperty("user.home")));
        if (way.equals(Way.AS_USER)) {
            all.add(Path.of("/root")); // the home that Java asks for by the number of the user
        }
        all.removeIf(each -> !Files.isDirectory(each));
        return all;
    }

    /** What every host shares with all others. */
    private static Set<Path> everywhere(List<Path> shared) {
        var all = new LinkedHashSet<>(shared);
        all.add(Repository.root());
        all.add(Path.of(System.getProperty("java.home")));
        all.add(Path.of(System.getProperty(
                "localRepository", System.getProperty("user.home") + "/.m2/repository"))); // Surefire's name
        return all;
    }

    private static String mount(Path from, Path to) {
        return "mount --rbind %s %s%n".formatted(quoted(from), quoted(to));
    }

    private static String quoted(Path path) {
        return "'" + path.toString().replace("'", "'\\''") + "'";
    }
}
