import { flow, sh } from 'crore/flow';

/** Ids carry the types: `lines` is a `string[]`, `lengths` a `number[]`, because of what stands above them. */
export default flow()
  .node('lines', () => ['to be', 'or not to be', 'that is the question'])
  .map('lengths', 'lines', (line) => line.length)
  .node(
    'longest',
    ['lines', 'lengths'],
    { retries: 2 },
    ({ lines, lengths }) => lines[lengths.indexOf(Math.max(...lengths))],
  )
  .add('shown', sh('echo "the longest: $CRORE_RESULT_longest"', { needs: ['longest'] }))
  .node('over', { shown: 'finished' }, ({ shown }) => shown !== undefined);
