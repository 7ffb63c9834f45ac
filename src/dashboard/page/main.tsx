import { render } from 'preact';
import './style.css';

render(<p>Crore</p>, document.getElementById('app')!);
