package org.fedcomuon.experiment;

import static java.util.stream.Collectors.joining;

import java.util.Arrays;
import java.util.List;
import org.fedcomuon.method.Muon;

/** The settings of what {@link Muon} can do beyond the paper. */
final class MuonSettings {
    /** The value for no rates of blocks. */
    static final String NONE = "none";

    private MuonSettings() {}

    /** Returns the same update with the options of a configuration. */
    static Muon options(Configuration c, Muon plain) {
        Muon muon = plain.withNesterov(c.flag("nesterov"))
                .withWeightDecay(c.number("weightDecay"))
                .withBlockRates(blockRates(c.text("blockRates")))
                .withHeads(Muon.Heads.of(c.integer("splitHeads")));
        Muon.AdamW vectors = Muon.AdamW.ofVectors(c.number("adamwRate"));
        return switch (c.text("adamw")) {
            case "vectors" -> muon.withAdamW(vectors);
            case "vectors+ends" -> muon.withAdamW(vectors.and(Muon.AdamW.ENDS));
            default -> muon;
        };
    }

    /**
     * Reads rates of blocks.
     *
     * @param text {@code none}, or {@code PATTERN=RATE} with semicolons between them
     */
    static List<Muon.BlockRate> blockRates(String text) {
        return text.equals(NONE)
                ? List.of()
                : Arrays.stream(text.split(";", -1)).map(Muon.BlockRate::parse).toList();
    }

    /** Returns rates of blocks as a configuration contains them. */
    static String canonicalRates(String text) {
        List<Muon.BlockRate> rates = blockRates(text);
        return rates.isEmpty()
                ? NONE
                : rates.stream().map(Muon.BlockRate::toString).collect(joining(";"));
    }
}
