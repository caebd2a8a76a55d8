package org.fedcomuon.dashboard;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import tools.jackson.databind.json.JsonMapper;

/**
 * Sends a history to those who listen: to each first all of it, then what is new, in one order. Events are numbered, so
 * that a browser whose connection broke hears what it has missed, and no more. Of all threads.
 */
final class Broadcast {
    static final int MOST_SUBSCRIBERS = 32;
    /** Events for those who come back, and characters of them. */
    private static final int MOST_RECENT = Subscriber.MOST_WAITING - 4;

    private static final long MOST_RECENT_SIZE = 4L << 20;
    /** Time passes on the page too. */
    private static final long TICK = TimeUnit.SECONDS.toNanos(1);
    /** After which nobody is expected back. */
    private static final long PATIENCE = TimeUnit.MINUTES.toNanos(1);

    private final JsonMapper json = JsonMapper.shared(); // which writes NaN as a string
    private final History history;
    /** So that the numbers of another process on the same port are not taken for ours. */
    private final String epoch;

    private final List<Subscriber> subscribers = new ArrayList<>();
    private final ArrayDeque<Event> recent = new ArrayDeque<>();
    private long recentSize;
    private long number;
    private long published;
    private long missed = System.nanoTime() - PATIENCE; // when the last one went
    private boolean closed;

    Broadcast(History history, String epoch) {
        this.history = history;
        this.epoch = epoch;
    }

    /** Tells what is new, if there is anything new and anybody to hear it. */
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
     * Somebody listens from now on.
     *
     * @param last the id of the last event that it has heard; empty for none
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

    /** Empty when it is not known any more what came after that event. */
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

    /** All there is, as JSON. */
    byte[] whole() {
        History.Frame frame;
        synchronized (this) {
            frame = history.take(true);
            send(frame);
        }
        return json.writeValueAsBytes(frame.whole().orElseThrow());
    }

    byte[] health() {
        return json.writeValueAsBytes(history.health());
    }

    synchronized int subscribers() {
        return subscribers.size();
    }

    /** Says the last word, and waits a little for those who listen to hear it; whoever does not is left. */
    synchronized void close(long millis) {
        if (closed) {
            return;
        }
        if (history.isChanged()) {
            send(history.take(false));
        }
        closed = true;
        subscribers.removeIf(subscriber -> !subscriber.offer(Event.LAST));
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
