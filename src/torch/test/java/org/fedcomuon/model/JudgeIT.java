package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;
import org.fedcomuon.data.TextBlocks;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Scores, before and after adaptation. */
class JudgeIT {
    @Test
    void whoKnowsNothingIsAsPerplexedAsTheVocabularyIsLarge() throws Exception {
        TinyModels model = TinyModels.LANGUAGE;
        try (Arena arena = Arena.ofShared();
                var judge = new Judge(model.network, 2)) {
            Point zero = model.point(arena);
            zero.values().fill(0);
            Judge.Score score = judge.score(zero, model.examples(5));
            assertThat(score.perplexity()).isCloseTo(11, within(1e-4));
            assertThat(score.loss()).isCloseTo(Math.log(11), within(1e-6));
            assertThat(score.count()).isEqualTo(5 * 6); // tokens
        }
    }

    @Test
    void sequencesAreFollowedByTheirNextToken() {
        Examples examples = Examples.of(new TextBlocks(new int[] {5, 6, 7, 8, 9, 10, 11, 12}, 3));
        assertThat(examples.count()).isEqualTo(2); // a third would need two words more
        assertThat(longs(examples.inputs())).containsExactly(5, 6, 7, 8, 9, 10);
        assertThat(longs(examples.labels())).containsExactly(6, 7, 8, 9, 10, 11);
        assertThat(longs(examples.select(1).labels())).containsExactly(9, 10, 11);
    }

    private static long[] longs(org.bytedeco.pytorch.Tensor tensor) {
        var values = new long[Math.toIntExact(tensor.numel())];
        tensor.contiguous().data_ptr_long().get(values);
        return values;
    }

    /** The caller frees the parameters when the call ends. */
    @Test
    void whatCannotBeScoredLeavesNobodyAtWork() {
        var pieces = new CountDownLatch(2);
        var working = new AtomicInteger();
        Callable<Integer> broken = () -> {
            pieces.countDown();
            pieces.await();
            throw new IllegalStateException("broken");
        };
        Callable<Integer> slow = () -> {
            working.incrementAndGet();
            pieces.countDown();
            pieces.await();
            Thread.sleep(100);
            return working.decrementAndGet();
        };
        try (ExecutorService pool = Judge.pool(2)) {
            assertThatThrownBy(() -> Judge.all(pool, List.of(broken, slow, slow)))
                    .hasMessage("a batch could not be scored: java.lang.IllegalStateException: broken");
            assertThat(working).hasValue(0);
        }
    }

    @Test
    void anInterruptionWaitsForThoseAtWork() {
        var working = new AtomicInteger();
        Thread judge = Thread.currentThread();
        Callable<Integer> slow = () -> {
            working.incrementAndGet();
            judge.interrupt();
            Thread.sleep(100);
            return working.decrementAndGet();
        };
        Callable<Integer> never = () -> working.addAndGet(1000);
        try (ExecutorService pool = Judge.pool(1)) {
            assertThatThrownBy(() -> Judge.all(pool, List.of(slow, never))).isInstanceOf(InterruptedException.class);
            assertThat(working).hasValue(0);
        }
    }

    @Test
    void batchesAreAsLargeAsMemoryAllows() {
        Examples images = TinyModels.images(600, 8, 10);
        assertThat(Tally.parts(new LeNet(), images)).extracting(Examples::count).containsExactly(250, 250, 100);
        assertThat(Tally.parts(new CifarCnn(), images))
                .extracting(Examples::count)
                .containsExactly(136, 136, 136, 136, 56);
        var large = new LanguageModel(LanguageModel.Sizes.paper(33_278));
        assertThat(Tally.parts(large, TinyModels.LANGUAGE.examples(40)))
                .allSatisfy(part -> assertThat(
                                MemoryEstimate.gradient(large, part.count()).evaluation())
                        .isLessThan(1L << 30));
        var huge = new LanguageModel(new LanguageModel.Sizes(2_000_000, 128, 1, 8, 1, 8, 0));
        assertThat(Tally.parts(huge, TinyModels.LANGUAGE.examples(3)))
                .extracting(Examples::count)
                .containsExactly(1, 1, 1);
    }

    @ParameterizedTest
    @EnumSource
    void theNumberOfThreadsDoesNotChangeABit(TinyModels model) throws Exception {
        List<MetaLearning.Episode> episodes = List.of(
                MetaLearning.Episode.split(model.examples(700), 30),
                MetaLearning.Episode.split(model.examples(300), 40));
        try (Arena arena = Arena.ofShared();
                var one = new Judge(model.network, 1);
                var two = new Judge(model.network, 2);
                var metaOne = new MetaJudge(model.network, Adaptation.exact(0.1), 1);
                var metaTwo = new MetaJudge(model.network, Adaptation.exact(0.1), 2)) {
            Point w = model.start(arena);
            assertThat(two.score(w, model.examples(700))).isEqualTo(one.score(w, model.examples(700)));
            List<Judge.Score> scores = metaOne.score(w, episodes);
            assertThat(metaTwo.score(w, episodes)).isEqualTo(scores);
            assertThat(w.values().toArray()).isEqualTo(model.weights()); // unchanged
        }
    }

    @ParameterizedTest
    @EnumSource
    void theMetaTestScoresWhatTheStepOfAdaptationMakes(TinyModels model) throws Exception {
        double rate = 0.2;
        Examples examples = model.examples(12);
        MetaLearning.Episode episode = MetaLearning.Episode.split(examples, 4);
        try (Arena arena = Arena.ofShared();
                var judge = new Judge(model.network, 1);
                var meta = new MetaJudge(model.network, Adaptation.exact(rate), 2);
                var without = new MetaJudge(model.network, Adaptation.exact(0), 1)) {
            Point w = model.start(arena);
            assertThat(without.score(w, List.of(episode)))
                    .containsExactly(judge.score(w, examples.select(4, 5, 6, 7, 8, 9, 10, 11)));

            Judge.Score score = meta.score(w, List.of(episode)).getFirst();
            Point adapted = model.start(arena);
            double[] slope = new DoublePrecision(
                            model.network.layout(),
                            at -> CrossEntropy.mean(
                                    model.network, at, DoublePrecision.of(episode.support()), Dropout.none()))
                    .gradient(DoublePrecision.widened(model.weights()));
            adapted.values()
                    .set(DoublePrecision.narrowed(
                            DoublePrecision.moved(DoublePrecision.widened(model.weights()), -rate, slope)));
            Judge.Score expected = judge.score(adapted, episode.query());
            assertThat(score.loss()).isCloseTo(expected.loss(), within(1e-5));
            assertThat(score.count()).isEqualTo(expected.count());
            assertThat(score.loss())
                    .isNotCloseTo(judge.score(w, episode.query()).loss(), within(1e-4));
        }
    }

    @Test
    void anEpisodeHasBothParts() {
        Examples examples = TinyModels.CNN.examples(3);
        assertThatThrownBy(() -> MetaLearning.Episode.split(examples, 0)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> MetaLearning.Episode.split(examples, 3))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("3 of 3");
        assertThatThrownBy(() -> new Adaptation(Double.NaN, false)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aTokenOutsideTheVocabularyIsAnError() throws Exception {
        TinyModels model = TinyModels.LANGUAGE;
        var loss = new NetworkLoss(
                model.network, Examples.of(new TextBlocks(new int[] {1, 2, 3, 99, 4, 5, 6}, 6)), JudgeIT::all);
        try (Arena arena = Arena.ofShared()) {
            Point w = model.start(arena);
            Point gradient = model.point(arena);
            assertThatThrownBy(() -> loss.evaluate(TinyModels.sample(0), w, gradient))
                    .isInstanceOf(RuntimeException.class);
        }
    }

    private static int[] all(Sample xi) {
        return new int[] {0};
    }
}
