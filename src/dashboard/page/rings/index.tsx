export function RingsPage() {
  return <h1>Rings</h1>;
}
export function RingPage() {
  return <h1>Ring</h1>;
}
