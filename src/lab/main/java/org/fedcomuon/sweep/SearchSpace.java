package org.fedcomuon.sweep;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.function.Predicate;
import java.util.random.RandomGenerator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The settings that a sweep varies, each with its possible values. Immutable. */
record SearchSpace(List<Axis> axes) {
    /** More combinations than anybody could wait for. */
    static final int MOST = 10_000;

    private static final Pattern RANGE = Pattern.compile("([^.].*?)\\.\\.(.*[^.])");
    private static final MathContext DIGITS = new MathContext(3);

    /** A setting and its possible values. */
    sealed interface Axis {
        String name();

        /** Returns a value by chance. */
        String draw(RandomGenerator random);
    }

    /** A list of values. */
    record Values(String name, List<String> values) implements Axis {
        Values {
            values = List.copyOf(values);
        }

        @Override
        public String draw(RandomGenerator random) {
            return values.get((int) (random.nextDouble() * values.size()));
        }
    }

    /**
     * All numbers between two positive ones, drawn so that every order of magnitude is equally likely, with three
     * digits.
     *
     * @param whole whether only whole numbers are meant
     */
    record Range(String name, double low, double high, boolean whole) implements Axis {
        /** Returns the least and the greatest value. */
        List<String> ends() {
            return List.of(text(low), text(high));
        }

        private String text(double value) {
            return whole
                    ? Long.toString(Math.round(value))
                    : BigDecimal.valueOf(value).stripTrailingZeros().toPlainString();
        }

        @Override
        public String draw(RandomGenerator random) {
            double value = low * Math.pow(high / low, random.nextDouble());
            return text(Math.clamp(new BigDecimal(value).round(DIGITS).doubleValue(), low, high));
        }
    }

    SearchSpace {
        axes = List.copyOf(axes);
    }

    /**
     * Reads an axis: {@code NAME=VALUE,VALUE,...} or {@code NAME=LOW..HIGH}. A comma in parentheses is part of a value,
     * such as {@code cosine(0.02, 0.001)}.
     *
     * @throws IllegalArgumentException when it is not one
     */
    static Axis parse(String text) {
        int equals = text.indexOf('=');
        if (equals < 1) {
            throw new IllegalArgumentException(
                    "--grid %s: NAME=VALUE,VALUE,... is needed, such as eta=0.01,0.02".formatted(text));
        }
        String name = text.substring(0, equals).strip();
        List<String> values = split(text.substring(equals + 1));
        if (values.isEmpty() || values.stream().anyMatch(String::isEmpty)) {
            throw new IllegalArgumentException(
                    "--grid %s: a value is empty; NAME=VALUE,VALUE,... is needed".formatted(text));
        }
        if (values.size() == 1) {
            Optional<Axis> range = range(name, values.getFirst());
            if (range.isPresent()) {
                return range.get();
            }
        }
        if (new HashSet<>(values).size() < values.size()) {
            throw new IllegalArgumentException("--grid %s: a value is given twice".formatted(text));
        }
        return new Values(name, values);
    }

    private static List<String> split(String text) {
        var parts = new ArrayList<String>();
        int depth = 0;
        int from = 0;
        for (int i = 0; i <= text.length(); i++) {
            if (i == text.length() || (text.charAt(i) == ',' && depth == 0)) {
                parts.add(text.substring(from, i).strip());
                from = i + 1;
            } else if (text.charAt(i) == '(') {
                depth++;
            } else if (text.charAt(i) == ')') {
                depth--;
            }
        }
        return parts;
    }

    /** Returns a range; empty for text that is something else, such as the path {@code ../data}. */
    private static Optional<Axis> range(String name, String text) {
        Matcher matcher = RANGE.matcher(text);
        if (!matcher.matches()) {
            return Optional.empty();
        }
        double low;
        double high;
        try {
            low = Double.parseDouble(matcher.group(1));
            high = Double.parseDouble(matcher.group(2));
        } catch (NumberFormatException e) {
            return Optional.empty();
        }
        if (!(low > 0 && low < high && high < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "--grid %s=%s: a range goes from a positive number to a larger one".formatted(name, text));
        }
        return Optional.of(new Range(name, low, high, isWhole(matcher.group(1)) && isWhole(matcher.group(2))));
    }

    private static boolean isWhole(String number) {
        return number.chars().allMatch(Character::isDigit);
    }

    /** Returns the axes of some names. */
    SearchSpace only(Predicate<String> names) {
        return new SearchSpace(
                axes.stream().filter(axis -> names.test(axis.name())).toList());
    }

    /** Returns the axes that are ranges: only chance gives values of these. */
    List<Axis> ranges() {
        return axes.stream().filter(Range.class::isInstance).toList();
    }

    /** Returns the number of combinations, at most one more than {@link #MOST}; there are no ranges. */
    int size() {
        int size = 1;
        for (Axis axis : axes) {
            size = Math.min(MOST + 1, size * ((Values) axis).values().size());
        }
        return size;
    }

    /** Returns all combinations, in which the last axis varies fastest; there are no ranges. */
    List<Map<String, String>> product() {
        List<Map<String, String>> all = List.of(Map.of());
        for (Axis axis : axes) {
            var longer = new ArrayList<Map<String, String>>();
            for (Map<String, String> settings : all) {
                for (String value : ((Values) axis).values()) {
                    var with = new LinkedHashMap<>(settings);
                    with.put(axis.name(), value);
                    longer.add(Collections.unmodifiableMap(with));
                }
            }
            all = longer;
        }
        return List.copyOf(all);
    }

    /** Returns the combinations that a strategy begins with. */
    List<Map<String, String>> settings(Strategy strategy, long seed) {
        return strategy.trials().isPresent()
                ? draw(strategy.trials().getAsInt(), new SplittableRandom(seed))
                : product();
    }

    /** Returns different combinations by chance: as many as asked for, or all if there are no more. */
    List<Map<String, String>> draw(int count, RandomGenerator random) {
        if (ranges().isEmpty() && size() <= Math.max(count, MOST)) {
            var all = new ArrayList<>(product());
            var drawn = new ArrayList<Map<String, String>>();
            while (drawn.size() < count && !all.isEmpty()) {
                drawn.add(all.remove((int) (random.nextDouble() * all.size())));
            }
            return drawn;
        }
        var drawn = new LinkedHashSet<Map<String, String>>();
        for (int tries = 0; drawn.size() < count && tries < 100 * count; tries++) { // ranges may be narrow
            var settings = new LinkedHashMap<String, String>();
            axes.forEach(axis -> settings.put(axis.name(), axis.draw(random)));
            drawn.add(Collections.unmodifiableMap(settings));
        }
        return List.copyOf(drawn);
    }
}
