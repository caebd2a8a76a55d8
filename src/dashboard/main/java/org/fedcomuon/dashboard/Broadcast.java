package org.fedcomuon.dashboard;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import tools.jackson.databind.json.JsonMapper;

/**
 * Sends a history to its subscribers: first all of it, then what is new, in the same order to each. Events are
 * numbered, so that a browser that reconnects receives exactly what it has missed. They are kept once for all
 * subscribers, and only the newest: who is further behind has lost. Confined to the thread of the server, but for
 * {@link #subscribers}.
 */
final class Broadcast {
    static final int MOST_SUBSCRIBERS = 32;
    /** Limits of the events that are kept: 16 seconds at four updates per second, and their bytes. */
    private static final int MOST_RECENT = 64;

    private static final long MOST_RECENT_BYTES = 2L << 20;
    /** A running page is updated at least this often, because the time it shows goes on. */
    private static final long TICK = TimeUnit.SECONDS.toNanos(1);
    /** How long after the last subscriber left its reconnection is expected. */
    private static final long PATIENCE = TimeUnit.MINUTES.toNanos(1);

    private final JsonMapper json = JsonMapper.shared(); // which writes NaN as a string
    private final History history;
    /** Distinguishes the event numbers from those of another process on the same port. */
    private final String epoch;

    private final List<Subscriber> subscribers = new ArrayList<>();
    private final List<Event> recent = new ArrayList<>();
    private long recentBytes;
    private long number;
    private long published;
    private long missed = System.nanoTime() - PATIENCE; // when the last subscriber left
    private volatile int count;

    Broadcast(History history, String epoch) {
        this.history = history;
        this.epoch = epoch;
    }

    /**
     * Makes an event of what is new, if anything is and somebody is subscribed.
     *
     * @param room whether there is memory for a whole history, for those who have none yet; otherwise they wait
     */
    void publish(boolean room) {
        long now = System.nanoTime();
        if (subscribers.isEmpty() && now - missed >= PATIENCE) {
            return;
        }
        List<Subscriber> joining =
                room ? subscribers.stream().filter(Subscriber::isJoining).toList() : List.of();
        if (joining.isEmpty() && !history.isChanged() && !(history.isRunning() && now - published >= TICK)) {
            return;
        }
        History.Frame frame = history.take(!joining.isEmpty());
        number++;
        published = now;
        Optional<Event> whole = frame.whole().map(all -> event("history", all));
        keep(frame.more().map(more -> event("update", more)).or(() -> whole).orElseThrow());
        joining.forEach(subscriber -> subscriber.begin(whole, number + 1));
    }

    private void keep(Event event) {
        recent.add(event);
        recentBytes += event.bytes().length;
        while (recent.size() > MOST_RECENT || (recentBytes > MOST_RECENT_BYTES && recent.size() > 1)) {
            recentBytes -= recent.removeFirst().bytes().length;
        }
    }

    private Event event(String name, Map<String, Object> data) {
        return new Event(
                number,
                "id: %s-%d\nevent: %s\ndata: %s\n\n"
                        .formatted(epoch, number, name, json.writeValueAsString(data))
                        .getBytes(StandardCharsets.UTF_8),
                false);
    }

    /**
     * Adds a subscriber.
     *
     * @param last the id of the last event that it has received; empty for none
     * @return whether there was room
     */
    boolean subscribe(Subscriber subscriber, String last) {
        if (subscribers.size() >= MOST_SUBSCRIBERS) {
            return false;
        }
        received(last).ifPresent(heard -> subscriber.begin(Optional.empty(), heard + 1));
        subscribers.add(subscriber);
        count = subscribers.size();
        return true;
    }

    /** The number of an event that has been received, if all later ones are still kept. */
    private Optional<Long> received(String last) {
        String prefix = epoch + "-";
        if (!last.startsWith(prefix) || !last.substring(prefix.length()).matches("[0-9]{1,18}")) {
            return Optional.empty();
        }
        long heard = Long.parseLong(last.substring(prefix.length()));
        return heard + 1 < oldest() || heard > number ? Optional.empty() : Optional.of(heard);
    }

    /** The number of the oldest event that is kept, or else of the next one. */
    private long oldest() {
        return recent.isEmpty() ? number + 1 : recent.getFirst().number();
    }

    void unsubscribe(Subscriber subscriber) {
        if (subscribers.remove(subscriber)) {
            count = subscribers.size();
            missed = System.nanoTime();
        }
    }

    /** What a subscriber is to be sent now that it has been sent all before; empty if there is nothing new. */
    Optional<Event> next(Subscriber subscriber) {
        subscriber.advance();
        Optional<Event> first = subscriber.takeFirst();
        if (first.isPresent()) {
            return first;
        }
        long index = subscriber.position() - oldest();
        if (subscriber.isJoining() || index < 0 || index >= recent.size()) {
            return Optional.empty();
        }
        subscriber.send();
        return Optional.of(recent.get((int) index));
    }

    /** Whether a subscriber is so far behind that what it is being sent, or comes next, is not kept any more. */
    boolean hasLost(Subscriber subscriber) {
        return !subscriber.isJoining() && subscriber.position() < oldest();
    }

    /** The whole history as JSON. */
    byte[] whole() {
        return json.writeValueAsBytes(history.whole());
    }

    byte[] charts(Charts.Choices choices) {
        return Charts.html(history.courses(), choices).getBytes(StandardCharsets.UTF_8);
    }

    byte[] health() {
        return json.writeValueAsBytes(history.health());
    }

    /** The document, in the state that the run is in. */
    byte[] document(Page page) {
        return page.html(history.title(), history.state());
    }

    /** The number of subscribers. Any thread may ask. */
    int subscribers() {
        return count;
    }

    /** Makes the last event. */
    void end() {
        publish(true);
        number++;
        // It carries the charts, because the server no longer answers a request for them.
        String data = json.writeValueAsString(
                Map.of("charts", new String(charts(Charts.Choices.NONE), StandardCharsets.UTF_8)));
        keep(new Event(number, "event: bye\ndata: %s\n\n".formatted(data).getBytes(StandardCharsets.UTF_8), true));
    }
}
