package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.Callable;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.federation.RunFiles;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.Npy;
import org.fedcomuon.format.NpzWriter;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Writes the weights of a run for other programs. */
@Command(
        name = "export",
        description = "Write the weights of a run, or of a .safetensors file, as float32 to .npz or .safetensors.")
final class ExportCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Parameters(
            index = "0",
            paramLabel = "RUN",
            description = "A directory that 'train' wrote, or a .safetensors file.")
    private Path run;

    @Parameters(index = "1", paramLabel = "OUT", description = "The file to write: OUT.npz or OUT.safetensors.")
    private Path out;

    @Override
    public Integer call() throws IOException {
        Path file = Files.isDirectory(run) ? new RunFiles(run).model() : run;
        if (!Files.exists(file)) {
            throw new UsageException(
                    Files.isDirectory(run)
                            ? "%s has no model.safetensors; a run leaves it when it ends".formatted(run)
                            : "%s does not exist; a directory of 'train' or a .safetensors file is needed"
                                    .formatted(run));
        }
        String name = out.toString();
        try (SafetensorsFile weights = SafetensorsFile.open(file)) {
            if (name.endsWith(".npz")) {
                toNpz(weights);
            } else if (name.endsWith(".safetensors")) {
                toSafetensors(weights);
            } else {
                throw new UsageException("%s: a name that ends in .npz or .safetensors is needed".formatted(out));
            }
            PrintWriter print = spec.commandLine().getOut();
            weights.tensors().values().forEach(tensor -> print.printf("%-24s %s%n", tensor.name(), tensor.shape()));
            print.println(out);
            print.flush();
        }
        return 0;
    }

    private void toNpz(SafetensorsFile weights) throws IOException {
        try (NpzWriter writer = NpzWriter.create(out)) {
            for (SafetensorsFile.Tensor tensor : weights.tensors().values()) {
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment values = floats(weights, tensor, arena);
                    writer.add(tensor.name(), new Npy.Array(ElementType.FLOAT32, tensor.shape(), false, values));
                }
            }
            writer.commit();
        }
    }

    private void toSafetensors(SafetensorsFile weights) throws IOException {
        List<SafetensorsWriter.Tensor> tensors = weights.tensors().values().stream()
                .map(tensor -> new SafetensorsWriter.Tensor(tensor.name(), Dtype.F32, tensor.shape()))
                .toList();
        var metadata = new LinkedHashMap<String, String>(weights.metadata());
        metadata.keySet().removeIf(key -> !List.of("preset", "method", "step").contains(key));
        try (var writer = SafetensorsWriter.create(out, metadata, tensors)) {
            for (SafetensorsFile.Tensor tensor : weights.tensors().values()) {
                try (Arena arena = Arena.ofConfined()) {
                    writer.write(tensor.name(), 0, floats(weights, tensor, arena));
                }
            }
            writer.commit();
        }
    }

    private static MemorySegment floats(SafetensorsFile weights, SafetensorsFile.Tensor tensor, Arena arena)
            throws IOException {
        MemorySegment values = arena.allocate(tensor.bytes() / tensor.dtype().bytes() * Float.BYTES, Float.BYTES);
        weights.readAsFloats(tensor.name(), values);
        return values;
    }
}
