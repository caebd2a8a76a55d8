package org.fedcomuon.cluster.mpi;

import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.fedcomuon.cluster.MemberFailedException;

/**
 * The signs of life that a process gives to process 0, and what it hears in return. One connection at a time; when it
 * breaks, or nothing comes back, another one is made.
 *
 * <p>Thread-safe.
 */
final class HeartbeatLink implements AutoCloseable {
    private static final Duration LONGEST_ATTEMPT = Duration.ofSeconds(5);

    /** By this much later than the one before it does a process report process 0; the first that does ends all. */
    private static final Duration STAGGER = Duration.ofMillis(200);

    private static final int BEAT = 1;

    private final int process;
    private final String host;
    private final HeartbeatAddress address;
    private final Duration silence;
    private final SilenceWatch watch;
    private final Thread thread =
            Thread.ofPlatform().daemon().name("mpi-heartbeats").unstarted(this::run);
    private volatile Optional<InetSocketAddress> reached = Optional.empty();

    private HeartbeatLink(
            int process,
            String host,
            HeartbeatAddress address,
            Duration silence,
            Consumer<MemberFailedException> onSilence) {
        this.process = process;
        this.host = host;
        this.address = address;
        this.silence = silence;
        watch = new SilenceWatch(0, 1, silence.plus(stagger(process, silence)), silent -> onSilence.accept(failure()));
    }

    /** Connects this process to process 0, whose silence counts from now on. */
    static HeartbeatLink open(
            int process,
            String host,
            HeartbeatAddress address,
            Duration silence,
            Consumer<MemberFailedException> onSilence) {
        var link = new HeartbeatLink(process, host, address, silence, onSilence);
        link.thread.start();
        link.watch.start();
        return link;
    }

    /** Returns how much later than process 1 a process reports what all of them notice. */
    static Duration stagger(int process, Duration silence) {
        Duration mine = STAGGER.multipliedBy(Math.max(0, process - 1));
        Duration most = silence.dividedBy(2);
        return mine.compareTo(most) < 0 ? mine : most;
    }

    private MemberFailedException failure() {
        String what = reached.isPresent()
                ? "process 0 on " + address.host()
                : "process 0 on %s, which process %d on %s cannot reach".formatted(address, process, host);
        return new MemberFailedException("no sign of life for %s from %s".formatted(SilenceWatch.text(silence), what));
    }

    private void run() {
        try {
            while (!Thread.currentThread().isInterrupted()) {
                for (InetSocketAddress candidate : reached.map(List::of).orElseGet(address::candidates)) {
                    try (var socket = new Socket()) {
                        beat(socket, candidate);
                    } catch (IOException e) {
                        // The silence counts, and not the reason.
                    }
                }
                rest();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closed
        }
    }

    private void beat(Socket socket, InetSocketAddress candidate) throws IOException, InterruptedException {
        Duration fifth = silence.dividedBy(5);
        int attemptMillis =
                Math.toIntExact((fifth.compareTo(LONGEST_ATTEMPT) < 0 ? fifth : LONGEST_ATTEMPT).toMillis());
        socket.connect(candidate, attemptMillis);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(attemptMillis);
        var out = new DataOutputStream(socket.getOutputStream());
        out.write(address.tokenBytes());
        out.writeInt(process);
        out.writeUTF(host);
        out.write(BEAT);
        while (socket.getInputStream().read() == BEAT) {
            watch.heard(0);
            reached = Optional.of(candidate);
            rest();
            out.write(BEAT);
        }
    }

    private void rest() throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(SilenceWatch.interval(silence).toNanos());
    }

    @Override
    public void close() {
        watch.close();
        thread.interrupt();
    }
}
