const only = document.getElementById("failed");
const shown = document.getElementById("shown");
const articles = [...document.querySelectorAll("article")];
function filter() {
  for (const article of articles) article.hidden = only.checked && article.dataset.outcome !== "failed";
  const left = articles.filter((article) => !article.hidden).length;
  shown.textContent = `${left} of ${articles.length} experiment${articles.length === 1 ? "" : "s"} shown`;
}
only.addEventListener("change", filter);
filter();
