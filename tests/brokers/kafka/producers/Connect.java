import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.connect.cli.ConnectStandalone;

/**
 * A Connect worker with one sink on "connect.in". Three records die, one per stage: text that is no JSON
 * (VALUE_CONVERTER), a field that cannot be cast (TRANSFORMATION), one the sink refuses (TASK_PUT).
 * Connect creates its dead-letter topic "connect.dlq" itself. args: bootstrap, a folder for its files.
 */
final class Connect {
  private static final int DEAD = 3;

  public static void main(String[] args) throws Exception {
    Path folder = Files.createDirectories(Path.of(args[1]));
    Path worker = Files.write(folder.resolve("worker.properties"), List.of(
        "bootstrap.servers=" + args[0],
        "listeners=http://127.0.0.1:0",
        "key.converter=org.apache.kafka.connect.storage.StringConverter",
        "value.converter=org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable=false",
        "offset.storage.file.filename=" + folder.resolve("offsets"),
        "offset.flush.interval.ms=1000",
        // The sink has no manifest: it is found on the class path.
        "plugin.discovery=only_scan"));
    Path sink = Files.write(folder.resolve("sink.properties"), List.of(
        "name=refusing-sink",
        "connector.class=RefusingSink",
        "tasks.max=1",
        "topics=connect.in",
        "transforms=cast",
        "transforms.cast.type=org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.cast.spec=n:int32",
        "errors.tolerance=all",
        "errors.deadletterqueue.topic.name=connect.dlq",
        "errors.deadletterqueue.topic.replication.factor=1",
        "errors.deadletterqueue.context.headers.enable=true"));
    try (Fixture fixture = new Fixture(args[0])) {
      fixture.create(Fixture.topic("connect.in", 2));
      long before = fixture.written("connect.dlq");
      fixture.send("connect.in", 1, "k0", Fixture.bytes("{\"n\":1}"));
      fixture.send("connect.in", 1, "k1", Fixture.bytes("no json"));
      fixture.send("connect.in", 1, "k2", Fixture.bytes("{\"n\":\"no number\"}"));
      fixture.send("connect.in", 1, "k3", Fixture.bytes("{\"n\":3,\"fail\":true}"));
      // The worker returns only when it is stopped, so it has a thread of its own.
      String[] files = {worker.toString(), sink.toString()};
      new Thread(() -> ConnectStandalone.main(files), "connect worker").start();
      fixture.await("connect.dlq", before + DEAD);
    }
    // The worker's own shutdown hook stops it.
    System.exit(0);
  }
}
