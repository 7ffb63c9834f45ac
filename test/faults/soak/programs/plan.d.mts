export type Kind = 'plain' | 'slow' | 'failing' | 'retried' | 'poison' | 'delayed' | 'grouped' | 'batch' | 'member';
export function kindOf(n: number): Kind;
export function endsDead(n: number): boolean;
