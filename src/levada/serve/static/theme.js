// Light or dark: as the system says, until the button is used.

function apply() {
  const saved = localStorage.getItem("theme");
  const dark = saved ? saved === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  return dark;
}

export function startTheme() {
  document.getElementById("theme").addEventListener("click", () => {
    localStorage.setItem("theme", apply() ? "light" : "dark");
    apply();
  });
  apply();
}
