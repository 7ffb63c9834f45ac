-- Leases of fresh jobs: one row for all jobs of a claim, see the table. A job gets a row of its own before anything but its common end happens to it.

-- The lease of a job that has a record and no row, and is not fresh any more.
create function crore.lease_of(p_queue int, p_job bigint) returns setof crore.leases language sql stable as $$
  select l.* from (select * from crore.leases where queue = p_queue and first <= p_job order by first desc limit 1) l where l.last >= p_job
$$;

-- Gives these jobs a row, as far as they are leased and have none.
create function crore.split_leases(p_queue int, p_jobs bigint[]) returns void language plpgsql as $$
declare
  v_head bigint := (select case when fresh > 0 then head else crore.first_row() end from crore.counts(p_queue));
  v_jobs bigint[] := array(select distinct r.n from unnest(p_jobs) u(n) cross join lateral crore.record_at(p_queue, u.n) r
    where u.n < least(v_head, crore.first_row()) and not exists (select 1 from crore.jobs j where j.n = u.n));
  r record;
begin
  if cardinality(v_jobs) = 0 then return; end if;
  for r in with made as (
      insert into crore.jobs (n, queue, state, seq, attempt, size, at, worker, token)
      select d.n, p_queue, 3, d.n, 1, d.size, l.at, l.worker, l.token from unnest(v_jobs) u(n)
        cross join lateral crore.lease_of(p_queue, u.n) l cross join lateral crore.record_at(p_queue, u.n) d
        returning token, n
    ) select m.token, count(*)::int as count, min(m.n) as n from made m group by m.token loop
    perform crore.shrink_lease(p_queue, (select first from crore.lease_of(p_queue, r.n)), r.count, true);
  end loop;
end $$;

-- The same for jobs by their ids.
create function crore.split_leases_of(p_queue int, p_ids text[]) returns void language plpgsql as $$
begin
  perform crore.split_leases(p_queue, array(select crore.found(p_queue, p_ids)));
end $$;

-- The same for all jobs of a worker.
create function crore.split_leases_by(p_queue int, p_worker text) returns void language plpgsql as $$
begin
  perform crore.split_leases(p_queue, array(select r.n from crore.leases l
    cross join lateral (select d.n from crore.records d where d.queue = p_queue and d.n >= l.first and d.n <= l.last order by d.n) r
    where l.queue = p_queue and l.worker = p_worker));
end $$;

-- So many jobs of a lease have ended, or have got a row.
create function crore.shrink_lease(p_queue int, p_first bigint, p_by int, p_split boolean) returns void language plpgsql as $$
begin
  delete from crore.leases where queue = p_queue and first = p_first and left_over = p_by;
  if found then return; end if;
  update crore.leases set left_over = left_over - p_by, split = split or p_split where queue = p_queue and first = p_first;
end $$;
