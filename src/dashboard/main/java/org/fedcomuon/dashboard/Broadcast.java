package org.fedcomuon.dashboard;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import tools.jackson.databind.json.JsonMapper;

/**
 * Sends a history to its subscribers: first all of it, then what is new, in the same order to each. Events are
 * numbered, so that a browser that reconnects receives exactly what it has missed. Thread-safe.
 */
final class Broadcast {
    static final int MOST_SUBSCRIBERS = 32;
    /** Limits of the events kept for browsers that reconnect: their number and their characters. */
    private static final int MOST_RECENT = Subscriber.MOST_WAITING - 4;

    private static final long MOST_RECENT_SIZE = 4L << 20;
    /** A running page is updated at least this often, because the time it shows goes on. */
    private static final long TICK = TimeUnit.SECONDS.toNanos(1);
    /** How long after the last subscriber left its reconnection is expected. */
    private static final long PATIENCE = TimeUnit.MINUTES.toNanos(1);

    private final JsonMapper json = JsonMapper.shared(); // which writes NaN as a string
    private final History history;
    /** Distinguishes the event numbers from those of another process on the same port. */
    private final String epoch;

    private final List<Subscriber> subscribers = new ArrayList<>();
    private final ArrayDeque<Event> recent = new ArrayDeque<>();
    private long recentSize;
    private long number;
    private long published;
    private long missed = System.nanoTime() - PATIENCE; // when the last subscriber left
    private boolean closed;

    Broadcast(History history, String epoch) {
        this.history = history;
        this.epoch = epoch;
    }

    /** Sends what is new, if anything is and somebody is subscribed. */
    synchronized void publish() {
        long now = System.nanoTime();
        if (closed || (subscribers.isEmpty() && now - missed >= PATIENCE)) {
            return;
        }
        if (history.isChanged() || (history.isRunning() && now - published >= TICK)) {
            send(history.take(false));
        }
    }

    private void send(History.Frame frame) {
        number++;
        published = System.nanoTime();
        Event event = frame.more()
                .map(more -> event("update", more))
                .orElseGet(() -> event("history", frame.whole().orElseThrow()));
        recent.add(event);
        recentSize += event.text().length();
        while (recent.size() > MOST_RECENT || recentSize > MOST_RECENT_SIZE) {
            recentSize -= recent.removeFirst().text().length();
        }
        subscribers.removeIf(subscriber -> !subscriber.offer(event));
    }

    private Event event(String name, Map<String, Object> data) {
        String text =
                "id: %s-%d\nevent: %s\ndata: %s\n\n".formatted(epoch, number, name, json.writeValueAsString(data));
        return new Event(number, text, false);
    }

    /**
     * Adds a subscriber.
     *
     * @param last the id of the last event that it has received; empty for none
     * @return whether there was room
     */
    synchronized boolean subscribe(Subscriber subscriber, String last) {
        if (closed || subscribers.size() >= MOST_SUBSCRIBERS) {
            return false;
        }
        History.Frame frame = history.take(true);
        send(frame);
        Optional<List<Event>> since = since(last);
        if (since.isPresent()) {
            since.get().forEach(subscriber::offer);
        } else {
            subscriber.offer(event("history", frame.whole().orElseThrow()));
        }
        subscribers.add(subscriber);
        return true;
    }

    /** The events after that one; empty if they are no longer kept. */
    private Optional<List<Event>> since(String last) {
        String prefix = epoch + "-";
        if (!last.startsWith(prefix) || !last.substring(prefix.length()).matches("[0-9]{1,18}")) {
            return Optional.empty();
        }
        long heard = Long.parseLong(last.substring(prefix.length()));
        if (recent.isEmpty() || heard + 1 < recent.getFirst().number() || heard > number) {
            return Optional.empty();
        }
        return Optional.of(
                recent.stream().filter(event -> event.number() > heard).toList());
    }

    synchronized void unsubscribe(Subscriber subscriber) {
        subscribers.remove(subscriber);
        missed = System.nanoTime();
        notifyAll();
    }

    /** The whole history as JSON. */
    byte[] whole() {
        History.Frame frame;
        synchronized (this) {
            frame = history.take(true);
            send(frame);
        }
        return json.writeValueAsBytes(frame.whole().orElseThrow());
    }

    String charts(Charts.Choices choices) {
        return Charts.html(history.courses(), choices);
    }

    byte[] health() {
        return json.writeValueAsBytes(history.health());
    }

    synchronized int subscribers() {
        return subscribers.size();
    }

    /** Sends the last event and waits up to {@code millis} until the subscribers have received it. */
    synchronized void close(long millis) {
        if (closed) {
            return;
        }
        if (history.isChanged()) {
            send(history.take(false));
        }
        closed = true;
        // It carries the charts, because the server no longer answers a request for them.
        String data = json.writeValueAsString(Map.of("charts", charts(Charts.Choices.NONE)));
        var last = new Event(0, "event: bye\ndata: %s\n\n".formatted(data), true);
        subscribers.removeIf(subscriber -> !subscriber.offer(last));
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        try {
            for (long rest = millis; !subscribers.isEmpty() && rest > 0; ) {
                wait(rest);
                rest = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        subscribers.forEach(Subscriber::leave);
        subscribers.clear();
    }
}
