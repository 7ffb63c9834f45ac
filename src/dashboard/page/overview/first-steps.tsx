import { Command } from '../components/copy.js';
import { Empty } from '../components/empty.js';
import { storeOption } from '../lib/store-option.js';

/** What a store without any queue shows. */
export function FirstSteps() {
  return (
    <Empty title="There is no queue yet">
      <p>A queue begins with its first job. Add one:</p>
      <Command line={`npx crore push mails '{"to":"ada"}'${storeOption()}`} />
      <p>To process its jobs, run an executable for each of them:</p>
      <Command line={`npx crore work mails${storeOption()} -- echo {}`} />
    </Empty>
  );
}
