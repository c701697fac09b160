import java.io.*;
import java.util.*;
import java.util.zip.*;

/** Payloads that only Java makes: serialised objects, and its own deflater at other levels. One JSON object a line. */
public class Objects {
    record Order(String id, int n) implements Serializable {}

    public static void main(String[] args) throws Exception {
        object("java-string", "java.lang.String \"hello\"", "hello");
        object("java-list", "java.util.ArrayList", new ArrayList<>(List.of(1, 2)));
        object("java-record", "Objects$Order", new Order("o-1", 2));
        object("java-exception", "java.lang.IllegalStateException", new IllegalStateException("no price"));
        object("java-bytes", "array [B", new byte[] {1, 2, 3});
        var best = new ByteArrayOutputStream();
        try (var out = new DeflaterOutputStream(best, new Deflater(9))) { out.write("{\"made\":\"by Java\",\"n\":1}".getBytes()); }
        line("java-deflater-9", best.toByteArray(), "zlib");
        var gzip = new ByteArrayOutputStream();
        try (var out = new GZIPOutputStream(gzip)) { out.write("{\"made\":\"by Java\",\"n\":1}".getBytes()); }
        line("java-gzip", gzip.toByteArray(), "gzip");
    }

    static void object(String name, String said, Object object) throws Exception {
        var bytes = new ByteArrayOutputStream();
        try (var out = new ObjectOutputStream(bytes)) { out.writeObject(object); }
        line(name, bytes.toByteArray(), said);
    }

    static void line(String name, byte[] bytes, String said) {
        System.out.printf("{\"name\":\"%s\",\"body\":\"%s\",\"said\":\"%s\"}%n", name, Base64.getEncoder().encodeToString(bytes), said.replace("\"", "\\\""));
    }
}
