package org.fedcomuon.experiment;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.fedcomuon.model.CifarCnn;
import org.fedcomuon.model.LanguageModel;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Sequential;
import org.fedcomuon.model.TorchScriptNetwork;
import org.fedcomuon.model.VisionTransformer;
import org.fedcomuon.problem.Block;

/**
 * A model.
 *
 * <p>Immutable.
 *
 * @param input the kind of its examples; empty if it can be made for any
 * @param factory makes it
 */
public record ModelChoice(String name, List<Setting> settings, Optional<Input> input, Factory factory)
        implements Choice {
    /** Makes a network. Called by many threads. */
    @FunctionalInterface
    @SuppressWarnings("exports") // users of networks have libtorch; others must not need it
    public interface Factory {
        /**
         * Makes it.
         *
         * @param input the kind of the examples
         * @param outputs the number of classes of a prediction, or as many as the objective needs
         * @throws IllegalArgumentException when it cannot be made for them
         */
        Network network(Configuration c, Input input, int outputs);
    }

    /** The setting that is a list of layers. */
    static final String LAYERS = "layers";

    private static final String CLASS = "class";
    private static final String TORCHSCRIPT = "torchscript";

    /** The models that are described in a preset instead of named. */
    static final List<String> STRUCTURED = List.of(LAYERS, CLASS, TORCHSCRIPT);

    private static final Input MNIST = new Input.Values(List.of(1, 28, 28));
    private static final Input CIFAR10 = new Input.Values(List.of(3, 32, 32));

    private static final Setting DEPTH = Setting.integer("depth", 1, 1000);
    private static final Setting WIDTH = Setting.integer("width", 2, 100_000);
    private static final Setting HEADS = Setting.integer("heads", 1, 1000);

    static final Registry<ModelChoice> ALL = new Registry<>(
            "model",
            ChoiceProvider::models,
            new ModelChoice("lenet", List.of(), Optional.of(MNIST), (c, input, outputs) -> new LeNet(outputs)),
            new ModelChoice(
                    "cifar-cnn",
                    List.of(
                            Setting.integer("wide", 1, 100_000).withDefault("96"),
                            Setting.integer("wider", 1, 100_000).withDefault("196"),
                            Setting.integer("narrow", 1, 100_000).withDefault("10"),
                            Setting.integer("dense", 1, 100_000).withDefault("1000")),
                    Optional.of(CIFAR10),
                    (c, input, classes) -> new CifarCnn(new CifarCnn.Sizes(
                            32,
                            c.integer("wide"),
                            c.integer("wider"),
                            c.integer("narrow"),
                            c.integer("dense"),
                            classes))),
            new ModelChoice(
                    "vit",
                    List.of(
                            Setting.integer("patch", 1, 100_000).withDefault("4"),
                            DEPTH.withDefault("12"),
                            WIDTH.withDefault("192"),
                            HEADS.withDefault("3")),
                    Optional.of(CIFAR10),
                    (c, input, classes) -> new VisionTransformer(new VisionTransformer.Sizes(
                            32,
                            c.integer("patch"),
                            c.integer("depth"),
                            c.integer("width"),
                            c.integer("heads"),
                            classes))),
            new ModelChoice(
                    "transformer",
                    List.of(
                            DEPTH.withDefault("8"),
                            WIDTH.withDefault("768"),
                            HEADS.withDefault("8"),
                            Setting.integer("hidden", 1, 1_000_000).withDefault("1024"),
                            Setting.notNegative("dropout").withDefault("0.1"),
                            update("embeddingUpdate"),
                            update("headUpdate")),
                    Optional.of(new Input.Words(1)),
                    (c, input, classes) -> new LanguageModel(
                            new LanguageModel.Sizes(
                                    classes,
                                    c.integer("length"),
                                    c.integer("depth"),
                                    c.integer("width"),
                                    c.integer("heads"),
                                    c.integer("hidden"),
                                    c.number("dropout")),
                            update(c, "embeddingUpdate"),
                            update(c, "headUpdate"))),
            new ModelChoice(
                    LAYERS,
                    List.of(LayerList.setting()),
                    Optional.empty(),
                    (c, input, outputs) -> new Sequential(input.shape(), LayerList.parse(c.text(LAYERS)), outputs)),
            new ModelChoice(
                    TORCHSCRIPT, List.of(Setting.path(TORCHSCRIPT)), Optional.empty(), ModelChoice::ofTorchScript),
            new ModelChoice(CLASS, List.of(Setting.text(CLASS)), Optional.empty(), ModelChoice::ofClass));

    private static Setting update(String name) {
        return Setting.oneOf(name, List.of("orthogonal", "vector")).withDefault("orthogonal");
    }

    private static Block.Update update(Configuration c, String name) {
        return Block.Update.valueOf(c.text(name).toUpperCase(Locale.ROOT));
    }

    /**
     * Returns the network for some data.
     *
     * @throws ConfigurationException when it cannot be trained on them
     */
    Network network(Configuration c, TaskData data) {
        ObjectiveChoice objective = c.chosen(Objectives.ALL);
        Input given = objective.input(data);
        if (input.isPresent() && !input.get().equals(given)) {
            throw new ConfigurationException("model = %s takes %s, but data = %s has %s"
                    .formatted(name, input.get(), c.text(DataChoice.ALL.kind()), given));
        }
        return factory.network(c, given, objective.outputs(data));
    }

    /**
     * Returns the SHA-256 of the file of the model, if it has one: a checkpoint is resumed with the same model only.
     */
    Optional<String> sha256(Configuration c) throws IOException {
        Optional<Path> file = name.equals(TORCHSCRIPT) ? c.path(TORCHSCRIPT) : Optional.empty();
        if (file.isEmpty()) {
            return Optional.empty();
        }
        try (InputStream in = Files.newInputStream(file.get())) {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            in.transferTo(new DigestOutputStream(OutputStream.nullOutputStream(), digest));
            return Optional.of(HexFormat.of().formatHex(digest.digest()));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // every JDK has it
        }
    }

    /** Returns what is wrong with the model whatever the data are, a line each. */
    List<String> mistakes(Configuration c) {
        try {
            if (name.equals(CLASS)) {
                found(c.text(CLASS));
            }
            return List.of();
        } catch (ConfigurationException e) {
            return e.lines();
        }
    }

    private static Network ofTorchScript(Configuration c, Input input, int outputs) {
        try {
            return TorchScriptNetwork.load(c.path(TORCHSCRIPT).orElseThrow(), input.shape(), outputs);
        } catch (IOException e) {
            throw new ConfigurationException("torchscript = " + e.getMessage(), e);
        }
    }

    /**
     * Makes a network of a class that is found by its name. It has a public constructor that takes the shape of an
     * example (a {@code List<Integer>}) and the number of outputs, or one without parameters.
     */
    private static Network ofClass(Configuration c, Input input, int outputs) {
        String type = c.text(CLASS);
        Class<?> found = found(type);
        try {
            Optional<Constructor<?>> sized = Arrays.stream(found.getConstructors())
                    .filter(constructor ->
                            Arrays.equals(constructor.getParameterTypes(), new Class<?>[] {List.class, int.class}))
                    .findFirst();
            Object made = sized.isPresent()
                    ? sized.get().newInstance(input.shape(), outputs)
                    : found.getConstructor().newInstance();
            return (Network) made;
        } catch (InvocationTargetException e) {
            throw new ConfigurationException("class = %s: %s".formatted(type, e.getCause()), e);
        } catch (ReflectiveOperationException | LinkageError e) {
            throw new ConfigurationException(
                    "class = %s needs a public constructor (List<Integer> shape, int outputs), or one without parameters: %s"
                            .formatted(type, e),
                    e);
        }
    }

    private static Class<?> found(String type) {
        Class<?> found;
        try {
            found = Class.forName(type, true, Thread.currentThread().getContextClassLoader());
        } catch (ClassNotFoundException e) {
            throw new ConfigurationException(
                    "class = %s is not found; --class-path names the jars or directories it is in".formatted(type), e);
        } catch (LinkageError e) {
            throw new ConfigurationException("class = %s cannot be used: %s".formatted(type, e), e);
        }
        if (!Network.class.isAssignableFrom(found)) {
            throw new ConfigurationException(
                    "class = %s does not implement %s".formatted(type, Network.class.getName()));
        }
        return found;
    }
}
