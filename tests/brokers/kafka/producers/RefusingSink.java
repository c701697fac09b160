import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A sink that swallows records, and reports those with a field "fail" as errant (stage TASK_PUT). */
public final class RefusingSink extends SinkConnector {
  public static final class RefusingTask extends SinkTask {
    @Override
    public String version() {
      return "1";
    }

    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public void put(Collection<SinkRecord> records) {
      for (SinkRecord record : records) {
        if (record.value() instanceof Map<?, ?> value && value.containsKey("fail")) {
          context.errantRecordReporter().report(
              record, new DataException("sink refused " + record.key(), new IllegalStateException("row too wide")));
        }
      }
    }

    @Override
    public void stop() {}
  }

  @Override
  public String version() {
    return "1";
  }

  @Override
  public void start(Map<String, String> settings) {}

  @Override
  public Class<? extends Task> taskClass() {
    return RefusingTask.class;
  }

  @Override
  public List<Map<String, String>> taskConfigs(int most) {
    return List.of(Map.of());
  }

  @Override
  public void stop() {}

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }
}
