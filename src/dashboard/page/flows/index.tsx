export function FlowsPage() {
  return <h1>Flows</h1>;
}
export function FlowPage() {
  return <h1>Flow</h1>;
}
