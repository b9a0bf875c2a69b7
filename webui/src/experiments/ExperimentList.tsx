import { Link } from "../app/Link";
import { QueryResult } from "../parts/QueryResult";
import { Notice } from "../parts/Notice";
import { Panel } from "../parts/Panel";
import { dayTime, duration } from "../parts/units";
import { useExperiments } from "./queries";
import { StateMark } from "./StateMark";

export function ExperimentList() {
  const list = useExperiments();
  return (
    <Panel title="Experiments">
      <QueryResult query={list} what="list of experiments">
        {({ pages }) => {
          const experiments = pages.flatMap((page) => page.experiments);
          return experiments.length === 0 ? (
            <Notice title="No experiment yet">
              Begin one here, or with ./capstan run small: what it finds is kept and shown here.
            </Notice>
          ) : (
            <>
              <table className="numbers">
                <thead>
                  <tr>
                    <th scope="col">experiment</th>
                    <th scope="col">state</th>
                    <th scope="col">began</th>
                    <th scope="col">took</th>
                  </tr>
                </thead>
                <tbody>
                  {experiments.map((experiment) => (
                    <tr key={experiment.id}>
                      <th scope="row">
                        <Link href={`/experiments/${experiment.id}`}>
                          {experiment.id}: {experiment.name}
                        </Link>
                        {experiment.simulated ? " (simulated)" : ""}
                        {experiment.points ? `, ${experiment.points} points` : ""}
                      </th>
                      <td>
                        <StateMark state={experiment.state} />
                      </td>
                      <td>{dayTime(experiment.created_at)}</td>
                      <td>
                        {experiment.finished_at === null
                          ? "–"
                          : duration(
                              experiment.finished_at - (experiment.started_at ?? experiment.created_at),
                            )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {list.hasNextPage && (
                <button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                  Show older ones
                </button>
              )}
            </>
          );
        }}
      </QueryResult>
    </Panel>
  );
}
