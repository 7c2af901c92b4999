// How does a view stay up to date? It looks again now and then, unless nobody sees it or somebody is at work in it.

export async function often(place, look, wait) {
  let timer = null, left = false;
  const again = async () => {
    if (!document.hidden && !place.contains(document.activeElement)) await look().catch(() => {});
    if (!left) timer = setTimeout(again, wait);
  };
  await look();
  timer = setTimeout(again, wait);
  return () => { left = true; clearTimeout(timer); };
}
