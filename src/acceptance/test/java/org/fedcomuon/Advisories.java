package org.fedcomuon;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import tools.jackson.databind.JsonNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/** What {@code docs/advisories.yaml} says, compared with jars. */
final class Advisories {
    /**
     * One of them, for one artifact.
     *
     * @param accepted why an affected jar may stay all the same
     */
    record Advisory(String id, String artifact, List<String> affected, String summary, Optional<String> accepted) {
        boolean concerns(Jars.Jar jar) {
            return jar.artifact().equals(artifact)
                    && affected.stream().anyMatch(range -> contains(range, jar.version()));
        }
    }

    private final List<Advisory> all = new ArrayList<>();

    Advisories(String yaml) {
        JsonNode root = YAMLMapper.shared().readTree(yaml);
        for (JsonNode node : root.path("advisories")) {
            var ranges = new ArrayList<String>();
            node.path("affected").forEach(range -> ranges.add(range.asString()));
            Optional<String> accepted = Optional.of(node.path("accepted").asString(""))
                    .filter(key -> !key.isEmpty())
                    .map(key -> Optional.of(root.path("reasons").path(key).asString(""))
                            .filter(reason -> !reason.isBlank())
                            .orElseThrow(() -> new IllegalArgumentException("no reason is called " + key)));
            if (ranges.isEmpty()) {
                throw new IllegalArgumentException(node + " affects no version");
            }
            all.add(new Advisory(
                    node.path("id").asString(),
                    node.path("artifact").asString(),
                    List.copyOf(ranges),
                    node.path("summary").asString(),
                    accepted));
        }
    }

    List<Advisory> all() {
        return List.copyOf(all);
    }

    /** A line for each jar that is affected without a reason to stay. */
    List<String> problems(List<Jars.Jar> jars) {
        var lines = new ArrayList<String>();
        for (Advisory advisory : all) {
            jars.stream()
                    .filter(jar -> advisory.accepted().isEmpty() && advisory.concerns(jar))
                    .forEach(jar -> lines.add("%s is affected by %s (%s): %s"
                            .formatted(
                                    jar.file(),
                                    advisory.id(),
                                    String.join(" or ", advisory.affected()),
                                    advisory.summary())));
        }
        return lines;
    }

    /** A line for each acceptance that no jar needs. */
    List<String> useless(List<Jars.Jar> jars) {
        return all.stream()
                .filter(advisory ->
                        advisory.accepted().isPresent() && jars.stream().noneMatch(advisory::concerns))
                .map(advisory ->
                        "%s is accepted for %s, but no jar is affected".formatted(advisory.id(), advisory.artifact()))
                .toList();
    }

    /** Whether all conditions of a range, such as {@code >=2.19.0 <2.21.5}, hold of a version. */
    static boolean contains(String range, String version) {
        for (String condition : range.strip().split(" +", -1)) {
            String operator = condition.replaceAll("[^<>=].*", "");
            int order = compare(version, condition.substring(operator.length()));
            boolean holds = switch (operator) {
                case "<" -> order < 0;
                case "<=" -> order <= 0;
                case ">=" -> order >= 0;
                case ">" -> order > 0;
                case "=" -> order == 0;
                default -> throw new IllegalArgumentException("no condition: " + condition);
            };
            if (!holds) {
                return false;
            }
        }
        return true;
    }

    /** By the numbers at the beginning: of what we have, "Final", "jre" and the like change nothing. */
    static int compare(String a, String b) {
        List<Long> left = numbers(a);
        List<Long> right = numbers(b);
        for (int i = 0; i < Math.max(left.size(), right.size()); i++) {
            int order = Long.compare(i < left.size() ? left.get(i) : 0, i < right.size() ? right.get(i) : 0);
            if (order != 0) {
                return order;
            }
        }
        return 0;
    }

    private static List<Long> numbers(String version) {
        var numbers = new ArrayList<Long>();
        for (String part : version.split("[.-]", -1)) {
            if (!part.matches("[0-9]{1,18}")) {
                break;
            }
            numbers.add(Long.parseLong(part));
        }
        return numbers;
    }
}
